#include "ops/nn/layer_norm/cuda.h"

#include "backend/cuda/sums.cuh"
#include "backend/cuda/vector.cuh"
#include "ops/nn/dropout/cuda_element.cuh"
#include "ops/nn/layer_norm/cuda_both.cuh"
#include "ops/nn/layer_norm/cuda_rows.cuh"

// Rows of a block; threads that sum a column.
enum { LANES = TR_CUDA_LANES, ROWS = TR_CUDA_NORM_ROWS, DEEP = TR_CUDA_COLUMN_THREADS };
enum { NARROW_THREADS = ROWS * LANES, WIDE_THREADS = TR_CUDA_ROW_WARPS * LANES };

static __device__ void put_one(float *to, int64_t i, float value, bool add) {
    if (to) {
        tr_cuda_put(&to[i], value, add);
    }
}

template <class T> static __device__ void narrow(const tr_cuda_norm &n) {
    tr_cuda_norm_narrow<TR_CUDA_ROW_CENTRED, T>(n);
}

template <class T> static __device__ void wide(const tr_cuda_norm &n) {
    tr_cuda_norm_wide<TR_CUDA_ROW_CENTRED, T>(n);
}

template <class T> static __device__ void residual_narrow(const tr_cuda_norm &n) {
    tr_cuda_norm_narrow<TR_CUDA_ROW_JOINED, T>(n);
}

template <class T> static __device__ void residual_wide(const tr_cuda_norm &n) {
    tr_cuda_norm_wide<TR_CUDA_ROW_JOINED, T>(n);
}

extern "C" __global__ void __launch_bounds__(NARROW_THREADS, 8)
    tr_cuda_layer_norm_narrow(tr_cuda_norm n) {
    TR_CUDA_BY_REAL(n.real, narrow, n);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_layer_norm_narrow);

extern "C" __global__ void __launch_bounds__(WIDE_THREADS, 2)
    tr_cuda_layer_norm_wide(tr_cuda_norm n) {
    TR_CUDA_BY_REAL(n.real, wide, n);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_layer_norm_wide);

extern "C" __global__ void __launch_bounds__(NARROW_THREADS, 5)
    tr_cuda_residual_norm_narrow(tr_cuda_norm n) {
    TR_CUDA_BY_REAL(n.real, residual_narrow, n);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_residual_norm_narrow);

extern "C" __global__ void __launch_bounds__(WIDE_THREADS, 1)
    tr_cuda_residual_norm_wide(tr_cuda_norm n) {
    TR_CUDA_BY_REAL(n.real, residual_wide, n);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_residual_norm_wide);

template <class T, int N>
static __device__ void backward(const tr_cuda_norm_backward &n) {
    int lane = threadIdx.x % LANES, begin = lane * N, step = LANES * N;
    int64_t row = blockIdx.x * (int64_t)ROWS + threadIdx.x / LANES;
    bool there = row < n.rows;
    row = there ? row : 0;
    const T *dy = (const T *)n.dy + row * n.width, *x = (const T *)n.x + row * n.width;
    const T *weight = (const T *)n.weight;
    T *dx = (T *)n.dx + row * n.width;
    bool aligned = tr_cuda_is_aligned(dy) && tr_cuda_is_aligned(x) &&
                   tr_cuda_is_aligned(weight) && tr_cuda_is_aligned(dx);
    float mean = n.mean[row], rstd = n.rstd[row], plain = 0, along = 0;
    for (int64_t c = begin; c < n.width; c += step) {
        tr_cuda_vector<N> g = tr_cuda_load<N>(dy + c, aligned);
        tr_cuda_vector<N> w = tr_cuda_load<N>(weight + c, aligned);
        tr_cuda_vector<N> v = tr_cuda_load<N>(x + c, aligned);
        TR_CUDA_UNROLL
        for (int k = 0; k < N; k++) {
            plain += g.e[k] * w.e[k];
            along += g.e[k] * w.e[k] * (v.e[k] - mean) * rstd;
        }
    }
    plain = tr_cuda_warp_sum(plain) / n.width;
    along = tr_cuda_warp_sum(along) / n.width;
    for (int64_t c = begin; there && c < n.width; c += step) {
        tr_cuda_vector<N> g = tr_cuda_load<N>(dy + c, aligned);
        tr_cuda_vector<N> w = tr_cuda_load<N>(weight + c, aligned);
        tr_cuda_vector<N> v = tr_cuda_load<N>(x + c, aligned);
        TR_CUDA_UNROLL
        for (int k = 0; k < N; k++) {
            float normal = (v.e[k] - mean) * rstd;
            v.e[k] = rstd * (g.e[k] * w.e[k] - plain - normal * along);
        }
        tr_cuda_store<N>(dx + c, v, n.add_dx, aligned);
    }
}

template <class T>
static __device__ void backward_rows(const tr_cuda_norm_backward &n) {
    TR_CUDA_BY_WIDTH(T, n.width, backward, n);
}

extern "C" __global__ void tr_cuda_layer_norm_rows_backward(tr_cuda_norm_backward n) {
    TR_CUDA_BY_REAL(n.real, backward_rows, n);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_layer_norm_rows_backward);

// A block sums the columns of its lanes, over a part of the rows, by DEEP threads each.
template <class T, int N>
static __device__ void sum_columns(const tr_cuda_norm_backward &n) {
    const T *from = (const T *)n.dy, *x = (const T *)n.x;
    int64_t c = (blockIdx.x * (int64_t)LANES + threadIdx.x) * N;
    int64_t first = blockIdx.y * n.part, out = blockIdx.y * n.width + c + threadIdx.y;
    int64_t end = first + n.part < n.rows ? first + n.part : n.rows;
    bool aligned = tr_cuda_is_aligned(from) && tr_cuda_is_aligned(x);
    tr_cuda_vector<N> dweight = {}, dbias = {};
    for (int64_t row = first + threadIdx.y; c < n.width && row < end; row += DEEP) {
        tr_cuda_vector<N> dy = tr_cuda_load<N>(from + row * n.width + c, aligned);
        tr_cuda_vector<N> v = tr_cuda_load<N>(x + row * n.width + c, aligned);
        float mean = n.mean[row], rstd = n.rstd[row];
        TR_CUDA_UNROLL
        for (int k = 0; k < N; k++) {
            dweight.e[k] += dy.e[k] * (v.e[k] - mean) * rstd;
            dbias.e[k] += dy.e[k];
        }
    }
    float of_weight = tr_cuda_columns_sum<N>(dweight.e);
    float of_bias = tr_cuda_columns_sum<N>(dbias.e);
    if (threadIdx.y < N && c < n.width) {
        put_one(n.dweight, out, of_weight, n.add_dweight);
        put_one(n.dbias, out, of_bias, n.add_dbias);
    }
}

template <class T>
static __device__ void backward_columns(const tr_cuda_norm_backward &n) {
    TR_CUDA_BY_WIDTH(T, n.width, sum_columns, n);
}

extern "C" __global__ void
tr_cuda_layer_norm_columns_backward(tr_cuda_norm_backward n) {
    TR_CUDA_BY_REAL(n.real, backward_columns, n);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_layer_norm_columns_backward);

template <class T> TR_CUDA_INLINE void both(const tr_cuda_norm_backward &n) {
    tr_cuda_both<true, T>(n);
}

// Registers for two blocks at a time, as for two there is shared memory.
extern "C" __global__ void __launch_bounds__(TR_CUDA_THREADS, 2)
    tr_cuda_layer_norm_both(tr_cuda_norm_backward n) {
    TR_CUDA_BY_REAL(n.real, both, n);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_layer_norm_both);

extern "C" __global__ void tr_cuda_norm_sums(tr_cuda_norm_parts a) {
    enum { TURN = 8 };
    int64_t c = blockIdx.x * (int64_t)LANES + threadIdx.x;
    bool first = blockIdx.y == 0; // an index would have the structure copied
    const float *from = first ? a.from[0] : a.from[1];
    float *sums = first ? a.sums[0] : a.sums[1], sum = 0;
    for (int64_t part = threadIdx.y; sums && c < a.width && part < a.parts;
         part += TURN * DEEP) {
        float some[TURN]; // all of them on their way together
        TR_CUDA_UNROLL
        for (int k = 0; k < TURN; k++) {
            int64_t at = part + k * DEEP;
            some[k] = at < a.parts ? from[at * a.width + c] : 0;
        }
        TR_CUDA_UNROLL
        for (int k = 0; k < TURN; k++) {
            sum += some[k];
        }
    }
    sum = tr_cuda_column_sum(sum);
    if (sums && threadIdx.y == 0 && c < a.width) {
        tr_cuda_put(&sums[c], sum, first ? a.add[0] : a.add[1]);
    }
}
TR_CUDA_KERNEL_MEETS(tr_cuda_norm_sums);
