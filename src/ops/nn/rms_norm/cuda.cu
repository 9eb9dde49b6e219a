#include "ops/nn/rms_norm/cuda.h"

#include "backend/cuda/sums.cuh"
#include "backend/cuda/vector.cuh"
#include "ops/nn/layer_norm/cuda_both.cuh"
#include "ops/nn/layer_norm/cuda_rows.cuh"

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

enum { LANES = TR_CUDA_LANES };

// The rest of a row may end anywhere.
template <class T>
static __device__ void pass(const T *x, T *y, const unit &u, bool add) {
    for (int64_t c = threadIdx.x % LANES; u.there && c < u.end; c += LANES) {
        tr_cuda_give(&y[u.at + c], tr_cuda_get(x[u.at + c]), add);
    }
}

// Do vectors of x at units begin at multiples of 16 bytes?
template <int N>
static __device__ bool is_aligned(const tr_cuda_rms_norm_sizes &s, const void *x) {
    return tr_cuda_is_aligned(x) && s.width % N == 0;
}

template <class T, int N> static __device__ void norm(const tr_cuda_rms_norm_args &a) {
    const T *x = (const T *)a.x, *weight = (const T *)a.weight;
    T *y = (T *)a.y;
    unit u = unit_of(a.s);
    int lane = threadIdx.x % LANES, begin = lane * N, step = LANES * N;
    if (u.passes) {
        if (y) {
            pass(x, y, u, a.add_y);
        }
        return;
    }
    bool aligned =
        is_aligned<N>(a.s, x) && tr_cuda_is_aligned(weight) && tr_cuda_is_aligned(y);
    float squares = 0;
    for (int64_t c = begin; c < u.end; c += step) {
        tr_cuda_vector<N> v = tr_cuda_load<N>(x + u.at + c, aligned);
        TR_CUDA_UNROLL
        for (int k = 0; k < N; k++) {
            squares += v.e[k] * v.e[k];
        }
    }
    float mean = tr_cuda_warp_sum(squares) / (float)a.s.depth;
    float rstd = 1 / sqrtf(mean + a.s.epsilon);
    const T *w = weight + weight_of(a.s, u.head);
    for (int64_t c = begin; y && u.there && c < u.end; c += step) {
        tr_cuda_vector<N> v = tr_cuda_load<N>(x + u.at + c, aligned);
        tr_cuda_vector<N> by = tr_cuda_load<N>(w + c, aligned);
        TR_CUDA_UNROLL
        for (int k = 0; k < N; k++) {
            v.e[k] = v.e[k] * rstd * by.e[k];
        }
        tr_cuda_store<N>(y + u.at + c, v, a.add_y, aligned);
    }
    if (a.rstd && u.there && lane == 0) {
        tr_cuda_put(&a.rstd[u.row * a.s.heads + u.head], rstd, a.add_rstd);
    }
}

// dx = rstd (dy w - xn mean(dy w xn)), xn = x rstd
template <class T, int N>
static __device__ void backward(const tr_cuda_rms_norm_backward_args &a) {
    const T *dy = (const T *)a.dy, *x = (const T *)a.x;
    T *dx = (T *)a.dx;
    unit u = unit_of(a.s);
    int begin = threadIdx.x % LANES * N, step = LANES * N;
    if (u.passes) {
        pass(dy, dx, u, a.add_dx);
        return;
    }
    const T *w = (const T *)a.weight + weight_of(a.s, u.head);
    bool aligned = is_aligned<N>(a.s, x) && tr_cuda_is_aligned(dy) &&
                   tr_cuda_is_aligned(w) && tr_cuda_is_aligned(dx);
    float rstd = a.rstd[u.row * a.s.heads + u.head], along = 0;
    for (int64_t c = begin; c < u.end; c += step) {
        tr_cuda_vector<N> d = tr_cuda_load<N>(dy + u.at + c, aligned);
        tr_cuda_vector<N> v = tr_cuda_load<N>(x + u.at + c, aligned);
        tr_cuda_vector<N> by = tr_cuda_load<N>(w + c, aligned);
        TR_CUDA_UNROLL
        for (int k = 0; k < N; k++) {
            along += d.e[k] * by.e[k] * (v.e[k] * rstd);
        }
    }
    along = tr_cuda_warp_sum(along) / (float)a.s.depth;
    for (int64_t c = begin; u.there && c < u.end; c += step) {
        tr_cuda_vector<N> d = tr_cuda_load<N>(dy + u.at + c, aligned);
        tr_cuda_vector<N> v = tr_cuda_load<N>(x + u.at + c, aligned);
        tr_cuda_vector<N> by = tr_cuda_load<N>(w + c, aligned);
        TR_CUDA_UNROLL
        for (int k = 0; k < N; k++) {
            v.e[k] = (d.e[k] * by.e[k] - v.e[k] * rstd * along) * rstd;
        }
        tr_cuda_store<N>(dx + u.at + c, v, a.add_dx, aligned);
    }
}

// A block sums its lanes' weights' terms over some rows, by TR_CUDA_COLUMN_THREADS
// threads each. blockIdx: weights, part of the rows
template <class T, int N>
static __device__ void sum_weights(const tr_cuda_rms_norm_backward_args &a) {
    const T *dy = (const T *)a.dy, *x = (const T *)a.x;
    int64_t w = (blockIdx.x * (int64_t)LANES + threadIdx.x) * N;
    int64_t head = w < a.s.depth ? 0 : a.s.queries;
    int64_t heads = w < a.s.depth ? a.s.queries : a.s.heads - a.s.queries;
    int64_t first = blockIdx.y * a.part, end = first + a.part;
    bool aligned = is_aligned<N>(a.s, x) && tr_cuda_is_aligned(dy);
    end = (end < a.s.rows ? end : a.s.rows) * heads;
    tr_cuda_vector<N> sum = {};
    for (int64_t i = first * heads + threadIdx.y; w < a.s.weights && i < end;
         i += TR_CUDA_COLUMN_THREADS) {
        int64_t row = i / heads, of = head + i % heads;
        int64_t at = row * a.s.width + of * a.s.depth + w % a.s.depth;
        float rstd = a.rstd[row * a.s.heads + of];
        tr_cuda_vector<N> d = tr_cuda_load<N>(dy + at, aligned);
        tr_cuda_vector<N> v = tr_cuda_load<N>(x + at, aligned);
        TR_CUDA_UNROLL
        for (int k = 0; k < N; k++) {
            sum.e[k] += d.e[k] * v.e[k] * rstd;
        }
    }
    float all = tr_cuda_columns_sum<N>(sum.e);
    if (threadIdx.y < N && w < a.s.weights) {
        a.parts[blockIdx.y * a.s.weights + w + threadIdx.y] = all;
    }
}

template <class T> static __device__ void norm_units(const tr_cuda_rms_norm_args &a) {
    TR_CUDA_BY_WIDTH(T, a.s.depth, norm, a);
}

template <class T>
static __device__ void backward_units(const tr_cuda_rms_norm_backward_args &a) {
    TR_CUDA_BY_WIDTH(T, a.s.depth, backward, a);
}

template <class T>
static __device__ void weight_parts(const tr_cuda_rms_norm_backward_args &a) {
    TR_CUDA_BY_WIDTH(T, a.s.depth, sum_weights, a);
}

extern "C" __global__ void tr_cuda_rms_norm(tr_cuda_rms_norm_args a) {
    TR_CUDA_BY_REAL(a.s.real, norm_units, a);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_rms_norm);

extern "C" __global__ void tr_cuda_rms_norm_backward(tr_cuda_rms_norm_backward_args a) {
    TR_CUDA_BY_REAL(a.s.real, backward_units, a);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_rms_norm_backward);

extern "C" __global__ void tr_cuda_rms_norm_weight(tr_cuda_rms_norm_backward_args a) {
    TR_CUDA_BY_REAL(a.s.real, weight_parts, a);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_rms_norm_weight);

// Rows of one head.
template <class T> static __device__ void narrow(const tr_cuda_norm &n) {
    tr_cuda_norm_narrow<TR_CUDA_ROW_SCALED, T>(n);
}

template <class T> static __device__ void wide(const tr_cuda_norm &n) {
    tr_cuda_norm_wide<TR_CUDA_ROW_SCALED, T>(n);
}

extern "C" __global__ void __launch_bounds__(TR_CUDA_NORM_ROWS *TR_CUDA_LANES, 8)
    tr_cuda_rms_norm_narrow(tr_cuda_norm n) {
    TR_CUDA_BY_REAL(n.real, narrow, n);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_rms_norm_narrow);

extern "C" __global__ void __launch_bounds__(TR_CUDA_ROW_WARPS *TR_CUDA_LANES, 2)
    tr_cuda_rms_norm_wide(tr_cuda_norm n) {
    TR_CUDA_BY_REAL(n.real, wide, n);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_rms_norm_wide);

template <class T> TR_CUDA_INLINE void both(const tr_cuda_norm_backward &n) {
    tr_cuda_both<false, T>(n);
}

// Registers for two blocks at a time, as for two there is shared memory.
extern "C" __global__ void __launch_bounds__(TR_CUDA_THREADS, 2)
    tr_cuda_rms_norm_both(tr_cuda_norm_backward n) {
    TR_CUDA_BY_REAL(n.real, both, n);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_rms_norm_both);
