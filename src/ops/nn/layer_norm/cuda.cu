#include "ops/nn/layer_norm/cuda.h"

#include "backend/cuda/sums.cuh"
#include "backend/cuda/vector.cuh"
#include "ops/nn/dropout/cuda_element.cuh"
#include "ops/nn/layer_norm/cuda_both.cuh"

// Rows of a block; threads that sum a column.
enum { LANES = TR_CUDA_LANES, ROWS = TR_CUDA_NORM_ROWS, DEEP = TR_CUDA_COLUMN_THREADS };

// What is normalized: x, or the sum as it is kept.
template <class T, int N>
static __device__ tr_cuda_vector<N> summands(const tr_cuda_norm &n, int64_t i,
                                             bool aligned) {
    tr_cuda_vector<N> x = tr_cuda_load<N>((const T *)n.x + i, aligned);
    if (!n.r) {
        return x;
    }
    tr_cuda_vector<N> r = tr_cuda_load<N>((const T *)n.r + i, aligned);
    TR_CUDA_UNROLL
    for (int k = 0; k < N; k++) {
        float multiplier = tr_cuda_multiplier(n.dropout, i + k);
        x.e[k] = tr_cuda_round<T>(r.e[k] + x.e[k] * multiplier);
    }
    return x;
}

template <class T, int N>
static __device__ void put(void *to, int64_t i, const tr_cuda_vector<N> &v, bool add,
                           bool aligned) {
    if (to) {
        tr_cuda_store<N>((T *)to + i, v, add, aligned);
    }
}

static __device__ void put_one(float *to, int64_t i, float value, bool add) {
    if (to) {
        tr_cuda_put(&to[i], value, add);
    }
}

static __device__ bool all_aligned(const tr_cuda_norm &n) {
    return tr_cuda_is_aligned(n.r) && tr_cuda_is_aligned(n.x) &&
           tr_cuda_is_aligned(n.weight) && tr_cuda_is_aligned(n.bias) &&
           tr_cuda_is_aligned(n.sum) && tr_cuda_is_aligned(n.y);
}

// A warp has a row.
template <class T, int N> static __device__ void norm(const tr_cuda_norm &n) {
    const T *weight = (const T *)n.weight, *bias = (const T *)n.bias;
    int lane = threadIdx.x % LANES, begin = lane * N, step = LANES * N;
    int64_t row = blockIdx.x * (int64_t)ROWS + threadIdx.x / LANES;
    bool there = row < n.rows, aligned = all_aligned(n);
    int64_t first = (there ? row : 0) * n.width;
    float mean = 0, variance = 0;
    for (int64_t c = begin; c < n.width; c += step) {
        tr_cuda_vector<N> x = summands<T, N>(n, first + c, aligned);
        TR_CUDA_UNROLL
        for (int k = 0; k < N; k++) {
            mean += x.e[k];
        }
    }
    mean = tr_cuda_warp_sum(mean) / n.width;
    for (int64_t c = begin; c < n.width; c += step) {
        tr_cuda_vector<N> x = summands<T, N>(n, first + c, aligned);
        TR_CUDA_UNROLL
        for (int k = 0; k < N; k++) {
            variance += (x.e[k] - mean) * (x.e[k] - mean);
        }
    }
    float rstd = 1 / sqrtf(tr_cuda_warp_sum(variance) / n.width + n.epsilon);
    for (int64_t c = begin; there && c < n.width; c += step) {
        tr_cuda_vector<N> x = summands<T, N>(n, first + c, aligned), y;
        tr_cuda_vector<N> w = tr_cuda_load<N>(weight + c, aligned);
        tr_cuda_vector<N> b = tr_cuda_load<N>(bias + c, aligned);
        TR_CUDA_UNROLL
        for (int k = 0; k < N; k++) {
            y.e[k] = (x.e[k] - mean) * rstd * w.e[k] + b.e[k];
        }
        put<T>(n.sum, first + c, x, n.add_sum, aligned);
        put<T>(n.y, first + c, y, n.add_y, aligned);
    }
    if (there && lane == 0) {
        put_one(n.mean, row, mean, n.add_mean);
        put_one(n.rstd, row, rstd, n.add_rstd);
    }
}

template <class T> static __device__ void norm_rows(const tr_cuda_norm &n) {
    TR_CUDA_BY_WIDTH(T, n.width, norm, n);
}

extern "C" __global__ void tr_cuda_layer_norm(tr_cuda_norm n) {
    TR_CUDA_BY_REAL(n.real, norm_rows, n);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_layer_norm);

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

template <class T> static __device__ void both(const tr_cuda_norm_backward &n) {
    tr_cuda_both<true, T>(n);
}

template <class T> static __device__ void both_wide(const tr_cuda_norm_backward &n) {
    tr_cuda_both_wide<true, T>(n);
}

// Registers for two blocks at a time.
extern "C" __global__ void __launch_bounds__(TR_CUDA_THREADS, 2)
    tr_cuda_layer_norm_both(tr_cuda_norm_backward n) {
    TR_CUDA_BY_REAL(n.real, both, n);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_layer_norm_both);

extern "C" __global__ void tr_cuda_layer_norm_both_wide(tr_cuda_norm_backward n) {
    TR_CUDA_BY_REAL(n.real, both_wide, n);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_layer_norm_both_wide);

extern "C" __global__ void tr_cuda_norm_sums(tr_cuda_norm_parts a) {
    int64_t c = blockIdx.x * (int64_t)LANES + threadIdx.x;
    bool first = blockIdx.y == 0; // an index would have the structure copied
    const float *from = first ? a.from[0] : a.from[1];
    float *sums = first ? a.sums[0] : a.sums[1], sum = 0;
    for (int64_t part = threadIdx.y; sums && c < a.width && part < a.parts;
         part += DEEP) {
        sum += from[part * a.width + c];
    }
    sum = tr_cuda_column_sum(sum);
    if (sums && threadIdx.y == 0 && c < a.width) {
        tr_cuda_put(&sums[c], sum, first ? a.add[0] : a.add[1]);
    }
}
TR_CUDA_KERNEL_MEETS(tr_cuda_norm_sums);
