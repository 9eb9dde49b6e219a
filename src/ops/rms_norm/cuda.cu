#include "ops/rms_norm/cuda.h"

#include "backend/cuda/real.cuh"
#include "backend/cuda/sums.cuh"

// A warp has a unit of a row.
typedef struct unit {
    int64_t row, head, at; // at: of its first element
    int64_t end;           // elements
    bool there, passes;
} unit;

static __device__ unit unit_of(const tr_cuda_rms_norm_sizes &s) {
    int64_t i = blockIdx.x * (int64_t)TR_CUDA_RMS_UNITS + threadIdx.x / TR_CUDA_LANES;
    unit u;
    u.there = i < s.rows * s.units;
    i = u.there ? i : 0;
    u.row = i / s.units;
    u.head = i % s.units;
    u.at = u.row * s.width + u.head * s.depth;
    u.passes = u.head >= s.heads;
    int64_t left = s.width - u.head * s.depth;
    u.end = left < s.depth ? left : s.depth;
    return u;
}

static __device__ int64_t weight_of(const tr_cuda_rms_norm_sizes &s, int64_t head) {
    return head < s.queries ? 0 : s.depth;
}

template <class T>
static __device__ void pass(const T *x, T *y, const unit &u, bool add) {
    for (int64_t c = threadIdx.x % TR_CUDA_LANES; u.there && c < u.end;
         c += TR_CUDA_LANES) {
        tr_cuda_give(&y[u.at + c], tr_cuda_get(x[u.at + c]), add);
    }
}

template <class T> static __device__ void norm(const tr_cuda_rms_norm_args &a) {
    const T *x = (const T *)a.x, *weight = (const T *)a.weight;
    T *y = (T *)a.y;
    unit u = unit_of(a.s);
    int lane = threadIdx.x % TR_CUDA_LANES;
    if (u.passes) {
        if (y) {
            pass(x, y, u, a.add_y);
        }
        return;
    }
    float squares = 0;
    for (int64_t c = lane; c < u.end; c += TR_CUDA_LANES) {
        float v = tr_cuda_get(x[u.at + c]);
        squares += v * v;
    }
    float mean = tr_cuda_warp_sum(squares) / (float)a.s.depth;
    float rstd = 1 / sqrtf(mean + a.s.epsilon);
    const T *w = weight + weight_of(a.s, u.head);
    for (int64_t c = lane; y && u.there && c < u.end; c += TR_CUDA_LANES) {
        float v = tr_cuda_get(x[u.at + c]) * rstd * tr_cuda_get(w[c]);
        tr_cuda_give(&y[u.at + c], v, a.add_y);
    }
    if (a.rstd && u.there && lane == 0) {
        tr_cuda_put(&a.rstd[u.row * a.s.heads + u.head], rstd, a.add_rstd);
    }
}

// dx = rstd (dy w - xn mean(dy w xn)), xn = x rstd
template <class T>
static __device__ void backward(const tr_cuda_rms_norm_backward_args &a) {
    const T *dy = (const T *)a.dy, *x = (const T *)a.x;
    T *dx = (T *)a.dx;
    unit u = unit_of(a.s);
    int lane = threadIdx.x % TR_CUDA_LANES;
    if (u.passes) {
        pass(dy, dx, u, a.add_dx);
        return;
    }
    const T *w = (const T *)a.weight + weight_of(a.s, u.head);
    float rstd = a.rstd[u.row * a.s.heads + u.head], along = 0;
    for (int64_t c = lane; c < u.end; c += TR_CUDA_LANES) {
        along += tr_cuda_get(dy[u.at + c]) * tr_cuda_get(w[c]) *
                 (tr_cuda_get(x[u.at + c]) * rstd);
    }
    along = tr_cuda_warp_sum(along) / (float)a.s.depth;
    for (int64_t c = lane; u.there && c < u.end; c += TR_CUDA_LANES) {
        float g = tr_cuda_get(dy[u.at + c]) * tr_cuda_get(w[c]);
        float normal = tr_cuda_get(x[u.at + c]) * rstd;
        tr_cuda_give(&dx[u.at + c], (g - normal * along) * rstd, a.add_dx);
    }
}

// A block sums 32 weights' terms over some rows, by TR_CUDA_COLUMN_THREADS threads
// each. blockIdx: 32 weights, part of the rows
template <class T>
static __device__ void weight_parts(const tr_cuda_rms_norm_backward_args &a) {
    const T *dy = (const T *)a.dy, *x = (const T *)a.x;
    int64_t w = blockIdx.x * (int64_t)TR_CUDA_LANES + threadIdx.x;
    int64_t head = w < a.s.depth ? 0 : a.s.queries;
    int64_t heads = w < a.s.depth ? a.s.queries : a.s.heads - a.s.queries;
    int64_t first = blockIdx.y * a.part, end = first + a.part;
    end = (end < a.s.rows ? end : a.s.rows) * heads;
    float sum = 0;
    for (int64_t i = first * heads + threadIdx.y; w < a.s.weights && i < end;
         i += TR_CUDA_COLUMN_THREADS) {
        int64_t row = i / heads, of = head + i % heads;
        int64_t at = row * a.s.width + of * a.s.depth + w % a.s.depth;
        sum += tr_cuda_get(dy[at]) * tr_cuda_get(x[at]) * a.rstd[row * a.s.heads + of];
    }
    sum = tr_cuda_column_sum(sum);
    if (threadIdx.y == 0 && w < a.s.weights) {
        a.parts[blockIdx.y * a.s.weights + w] = sum;
    }
}

extern "C" __global__ void tr_cuda_rms_norm(tr_cuda_rms_norm_args a) {
    TR_CUDA_BY_REAL(a.s.real, norm, a);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_rms_norm);

extern "C" __global__ void tr_cuda_rms_norm_backward(tr_cuda_rms_norm_backward_args a) {
    TR_CUDA_BY_REAL(a.s.real, backward, a);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_rms_norm_backward);

extern "C" __global__ void tr_cuda_rms_norm_weight(tr_cuda_rms_norm_backward_args a) {
    TR_CUDA_BY_REAL(a.s.real, weight_parts, a);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_rms_norm_weight);
