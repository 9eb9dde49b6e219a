#include "ops/nn/batch_norm/cuda.h"

#include "backend/cuda/real.cuh"
#include "backend/cuda/sums.cuh"
#include "ops/nn/batch_norm/statistic.h"

// The thread's channel. That of the last threads may not be there.
static __device__ int64_t channel_here() {
    return blockIdx.x * (int64_t)TR_CUDA_LANES + threadIdx.x;
}

// Elements of channel c at the pixels of the thread.
#define EACH_PIXEL(at, s, c)                                                           \
    for (int64_t i = blockIdx.y * (s).part + threadIdx.y, at = i * (s).channels + (c), \
                 stop = end_of(s);                                                     \
         (c) < (s).channels && i < stop;                                               \
         i += TR_CUDA_COLUMN_THREADS, at = i * (s).channels + (c))

static __device__ int64_t end_of(const tr_cuda_pixels &s) {
    int64_t end = (blockIdx.y + (int64_t)1) * s.part;
    return end < s.pixels ? end : s.pixels;
}

// Two sums of the block's channel c, of what all its pixels add.
static __device__ void put_parts(double *parts, const tr_cuda_pixels &s, int64_t c,
                                 double first, double second) {
    first = tr_cuda_column_sum(first);
    second = tr_cuda_column_sum(second);
    if (threadIdx.y == 0 && c < s.channels) {
        parts[2 * blockIdx.y * s.channels + c] = first;
        parts[(2 * blockIdx.y + 1) * s.channels + c] = second;
    }
}

// ---- statistics

template <class T> static __device__ void sum_parts(const tr_cuda_batch_stat_args &a) {
    const T *x = (const T *)a.x;
    int64_t c = channel_here();
    double sum = 0, squares = 0;
    EACH_PIXEL(at, a.s, c) {
        double v = tr_cuda_get(x[at]);
        sum += v;
        squares += v * v;
    }
    put_parts(a.parts, a.s, c, sum, squares);
}

extern "C" __global__ void tr_cuda_batch_stat_parts(tr_cuda_batch_stat_args a) {
    TR_CUDA_BY_REAL(a.s.real, sum_parts, a);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_batch_stat_parts);

static __device__ tr_statistic part_statistic(const tr_cuda_batch_stat_args &a,
                                              int64_t part, int64_t c) {
    int64_t left = a.s.pixels - part * a.s.part;
    double count = (double)(left < a.s.part ? left : a.s.part);
    double sum = a.parts[2 * part * a.s.channels + c];
    double squares = a.parts[(2 * part + 1) * a.s.channels + c];
    double mean = sum / count, apart = squares - mean * sum;
    tr_statistic s = {count, mean, apart < 0 ? 0 : apart};
    return s;
}

extern "C" __global__ void tr_cuda_batch_stat(tr_cuda_batch_stat_args a) {
    TR_CUDA_LOOP(c, a.s.channels) {
        tr_statistic s = {0, 0, 0};
        for (int64_t part = 0; part < a.part_count; part++) {
            s = tr__statistic_merge(s, part_statistic(a, part, c));
        }
        if (a.stat) {
            tr__statistic_give(a.stat, a.s.channels, c, s, a.add_stat);
        }
        if (a.other) {
            tr__statistic_give(a.other, a.s.channels, c, s, a.add_other);
        }
    }
}
TR_CUDA_KERNEL(tr_cuda_batch_stat);

extern "C" __global__ void tr_cuda_batch_track(tr_cuda_batch_track_args a) {
    TR_CUDA_LOOP(c, a.channels) {
        tr_statistic s = tr__statistic_at(a.stat, a.channels, c);
        double now = s.squares / (s.count > 1 ? s.count - 1 : 1);
        if (s.count > 0) {
            a.mean[c] += a.momentum * (float)(s.mean - a.mean[c]);
            a.variance[c] += a.momentum * (float)(now - a.variance[c]);
        }
        if (c == 0) {
            *a.tracked += 1;
        }
    }
}
TR_CUDA_KERNEL(tr_cuda_batch_track);

// ---- the batch normalized

// What a channel is normalized by: y = (x - mean) scale + bias.
typedef struct scaling {
    float mean, scale;
} scaling;

static __device__ scaling scaling_of(const tr_cuda_batch_norm_args &a, float weight,
                                     int64_t c) {
    scaling by;
    if (a.mean) {
        double variance = a.variance[c];
        by.mean = a.mean[c];
        by.scale = (float)(weight / sqrt(variance + (double)a.epsilon));
    } else {
        tr_statistic s = tr__statistic_at(a.stat, a.s.channels, c);
        by.mean = (float)s.mean;
        by.scale = (float)(weight * tr__statistic_rstd(s, a.epsilon));
    }
    return by;
}

template <class T> static __device__ void norm(const tr_cuda_batch_norm_args &a) {
    const T *x = (const T *)a.x, *residual = (const T *)a.residual;
    T *y = (T *)a.y;
    int64_t c = channel_here(), known = c < a.s.channels ? c : 0;
    float bias = tr_cuda_get(((const T *)a.bias)[known]);
    scaling by = scaling_of(a, tr_cuda_get(((const T *)a.weight)[known]), known);
    EACH_PIXEL(at, a.s, c) {
        float value = (tr_cuda_get(x[at]) - by.mean) * by.scale + bias;
        value += residual ? tr_cuda_get(residual[at]) : 0;
        value = a.relu && value < 0 ? 0 : value; // NaN stays
        tr_cuda_give(&y[at], value, a.add);
    }
}

extern "C" __global__ void tr_cuda_batch_norm(tr_cuda_batch_norm_args a) {
    TR_CUDA_BY_REAL(a.s.real, norm, a);
}
TR_CUDA_KERNEL(tr_cuda_batch_norm);

// ---- backward

template <class T>
static __device__ void backward(const tr_cuda_batch_norm_backward_args &a) {
    const T *dy = (const T *)a.dy, *x = (const T *)a.x, *y = (const T *)a.y;
    T *dx = (T *)a.dx, *dresidual = (T *)a.dresidual;
    int64_t c = channel_here(), known = c < a.s.channels ? c : 0;
    tr_statistic s = tr__statistic_at(a.stat, a.s.channels, known);
    float weight = tr_cuda_get(((const T *)a.weight)[known]), mean = (float)s.mean;
    float slope = (float)(weight * tr__statistic_rstd(s, a.epsilon));
    double plain = 0, along = 0;
    EACH_PIXEL(at, a.s, c) {
        float d = y && tr_cuda_get(y[at]) <= 0 ? 0 : tr_cuda_get(dy[at]);
        plain += d;
        along += d * (tr_cuda_get(x[at]) - mean);
        if (dresidual) {
            tr_cuda_give(&dresidual[at], d, a.add_dresidual);
        }
        if (dx) {
            tr_cuda_give(&dx[at], d * slope, a.add_dx);
        }
    }
    put_parts(a.parts, a.s, c, plain, along);
}

extern "C" __global__ void
tr_cuda_batch_norm_backward(tr_cuda_batch_norm_backward_args a) {
    TR_CUDA_BY_REAL(a.s.real, backward, a);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_batch_norm_backward);

template <class T>
static __device__ void give_sums(const tr_cuda_batch_norm_backward_args &a) {
    TR_CUDA_LOOP(c, a.s.channels) {
        tr_statistic s = tr__statistic_at(a.stat, a.s.channels, c);
        double rstd = tr__statistic_rstd(s, a.epsilon), plain = 0, along = 0;
        for (int64_t part = 0; part < a.part_count; part++) {
            plain += a.parts[2 * part * a.s.channels + c];
            along += a.parts[(2 * part + 1) * a.s.channels + c];
        }
        along *= rstd;
        if (a.dstat) {
            double weight = tr_cuda_get(((const T *)a.weight)[c]);
            tr_statistic g = tr__statistic_gradient(s, rstd, weight, plain, along);
            tr__statistic_add(a.dstat, a.s.channels, c, g, a.add_dstat);
        }
        if (a.dweight) {
            a.dweight[c] = (float)((a.add_dweight ? a.dweight[c] : 0) + along);
        }
        if (a.dbias) {
            a.dbias[c] = (float)((a.add_dbias ? a.dbias[c] : 0) + plain);
        }
    }
}

extern "C" __global__ void tr_cuda_batch_norm_sums(tr_cuda_batch_norm_backward_args a) {
    TR_CUDA_BY_REAL(a.s.real, give_sums, a);
}
TR_CUDA_KERNEL(tr_cuda_batch_norm_sums);

// dx = from + slope (x - mean)
template <class T> static __device__ void slope(const tr_cuda_batch_slope_args &a) {
    const T *x = (const T *)a.x;
    T *dx = (T *)a.dx;
    int64_t c = channel_here(), known = c < a.s.channels ? c : 0;
    tr_statistic s = tr__statistic_at(a.stat, a.s.channels, known);
    double from, by;
    tr__statistic_slope(s, tr__statistic_at(a.dstat, a.s.channels, known), &from, &by);
    float mean = (float)s.mean, start = (float)from, rise = (float)by;
    EACH_PIXEL(at, a.s, c) {
        bool there = i < a.there;
        float value = there ? start + rise * (tr_cuda_get(x[at]) - mean) : 0;
        tr_cuda_give(&dx[at], value, a.add);
    }
}

extern "C" __global__ void tr_cuda_batch_slope(tr_cuda_batch_slope_args a) {
    TR_CUDA_BY_REAL(a.s.real, slope, a);
}
TR_CUDA_KERNEL(tr_cuda_batch_slope);
