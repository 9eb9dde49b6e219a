#include "ops/layer_norm/cuda.h"

#include "backend/cuda/real.cuh"
#include "backend/cuda/sums.cuh"
#include "ops/dropout/cuda_element.cuh"

// Rows of a block; threads that sum a column.
enum { LANES = TR_CUDA_LANES, ROWS = TR_CUDA_NORM_ROWS, DEEP = TR_CUDA_COLUMN_THREADS };

// What is normalized: x, or the sum as it is kept.
template <class T> static __device__ float summand(const tr_cuda_norm &n, int64_t i) {
    float x = tr_cuda_get(((const T *)n.x)[i]);
    if (!n.r) {
        return x;
    }
    float r = tr_cuda_get(((const T *)n.r)[i]);
    return tr_cuda_round<T>(r + x * tr_cuda_multiplier(n.dropout, i));
}

template <class T>
static __device__ void put(void *to, int64_t i, float value, bool add) {
    if (to) {
        tr_cuda_give(&((T *)to)[i], value, add);
    }
}

// A warp has a row.
template <class T> static __device__ void norm(const tr_cuda_norm &n) {
    const T *weight = (const T *)n.weight, *bias = (const T *)n.bias;
    int lane = threadIdx.x % LANES;
    int64_t row = blockIdx.x * (int64_t)ROWS + threadIdx.x / LANES;
    bool there = row < n.rows;
    int64_t first = (there ? row : 0) * n.width;
    float mean = 0, variance = 0;
    for (int64_t c = lane; c < n.width; c += LANES) {
        mean += summand<T>(n, first + c);
    }
    mean = tr_cuda_warp_sum(mean) / n.width;
    for (int64_t c = lane; c < n.width; c += LANES) {
        float off = summand<T>(n, first + c) - mean;
        variance += off * off;
    }
    float rstd = 1 / sqrtf(tr_cuda_warp_sum(variance) / n.width + n.epsilon);
    for (int64_t c = lane; there && c < n.width; c += LANES) {
        float x = summand<T>(n, first + c);
        float y = (x - mean) * rstd * tr_cuda_get(weight[c]) + tr_cuda_get(bias[c]);
        put<T>(n.sum, first + c, x, n.add_sum);
        put<T>(n.y, first + c, y, n.add_y);
    }
    if (there && lane == 0) {
        put<float>(n.mean, row, mean, n.add_mean);
        put<float>(n.rstd, row, rstd, n.add_rstd);
    }
}

extern "C" __global__ void tr_cuda_layer_norm(tr_cuda_norm n) {
    TR_CUDA_BY_REAL(n.real, norm, n);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_layer_norm);

template <class T>
static __device__ void backward_rows(const tr_cuda_norm_backward &n) {
    int lane = threadIdx.x % LANES;
    int64_t row = blockIdx.x * (int64_t)ROWS + threadIdx.x / LANES;
    bool there = row < n.rows;
    row = there ? row : 0;
    const T *dy = (const T *)n.dy + row * n.width, *x = (const T *)n.x + row * n.width;
    const T *weight = (const T *)n.weight;
    float mean = n.mean[row], rstd = n.rstd[row], plain = 0, along = 0;
    for (int64_t c = lane; c < n.width; c += LANES) {
        float g = tr_cuda_get(dy[c]) * tr_cuda_get(weight[c]);
        plain += g;
        along += g * (tr_cuda_get(x[c]) - mean) * rstd;
    }
    plain = tr_cuda_warp_sum(plain) / n.width;
    along = tr_cuda_warp_sum(along) / n.width;
    for (int64_t c = lane; there && c < n.width; c += LANES) {
        float g = tr_cuda_get(dy[c]) * tr_cuda_get(weight[c]);
        float normal = (tr_cuda_get(x[c]) - mean) * rstd;
        put<T>(n.dx, row * n.width + c, rstd * (g - plain - normal * along), n.add_dx);
    }
}

extern "C" __global__ void tr_cuda_layer_norm_rows_backward(tr_cuda_norm_backward n) {
    TR_CUDA_BY_REAL(n.real, backward_rows, n);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_layer_norm_rows_backward);

// A block sums 32 columns of a part of the rows, DEEP threads each.
template <class T>
static __device__ void backward_columns(const tr_cuda_norm_backward &n) {
    const T *from = (const T *)n.dy, *x = (const T *)n.x;
    int64_t c = blockIdx.x * (int64_t)LANES + threadIdx.x;
    int64_t first = blockIdx.y * n.part, out = blockIdx.y * n.width + c;
    int64_t end = first + n.part < n.rows ? first + n.part : n.rows;
    float dweight = 0, dbias = 0;
    for (int64_t row = first + threadIdx.y; c < n.width && row < end; row += DEEP) {
        int64_t at = row * n.width + c;
        float dy = tr_cuda_get(from[at]);
        dweight += dy * (tr_cuda_get(x[at]) - n.mean[row]) * n.rstd[row];
        dbias += dy;
    }
    dweight = tr_cuda_column_sum(dweight);
    dbias = tr_cuda_column_sum(dbias);
    if (threadIdx.y == 0 && c < n.width) {
        put<float>(n.dweight, out, dweight, n.add_dweight);
        put<float>(n.dbias, out, dbias, n.add_dbias);
    }
}

extern "C" __global__ void
tr_cuda_layer_norm_columns_backward(tr_cuda_norm_backward n) {
    TR_CUDA_BY_REAL(n.real, backward_columns, n);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_layer_norm_columns_backward);
