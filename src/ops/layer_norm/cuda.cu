#include "ops/layer_norm/cuda.h"

#include "backend/cuda/sums.cuh"
#include "ops/dropout/cuda_element.cuh"

// Rows of a block; threads that sum a column.
enum { LANES = TR_CUDA_LANES, ROWS = TR_CUDA_NORM_ROWS, DEEP = TR_CUDA_COLUMN_THREADS };

// A lane always has the same columns of a row, so that it may read back what it wrote.
static __device__ float summand(const tr_cuda_norm &n, int64_t i) {
    return n.r ? n.r[i] + n.x[i] * tr_cuda_multiplier(n.dropout, i) : n.x[i];
}

static __device__ void put(float *to, int64_t i, float value, bool add) {
    if (to) {
        tr_cuda_put(&to[i], value, add);
    }
}

// A warp has a row.
extern "C" __global__ void tr_cuda_layer_norm(tr_cuda_norm n) {
    int lane = threadIdx.x % LANES;
    int64_t row = blockIdx.x * (int64_t)ROWS + threadIdx.x / LANES;
    bool there = row < n.rows;
    int64_t first = (there ? row : 0) * n.width;
    float mean = 0, variance = 0;
    for (int64_t c = lane; c < n.width; c += LANES) {
        mean += summand(n, first + c);
    }
    mean = tr_cuda_warp_sum(mean) / n.width;
    for (int64_t c = lane; c < n.width; c += LANES) {
        float off = summand(n, first + c) - mean;
        variance += off * off;
    }
    float rstd = 1 / sqrtf(tr_cuda_warp_sum(variance) / n.width + n.epsilon);
    for (int64_t c = lane; there && c < n.width; c += LANES) {
        float x = summand(n, first + c);
        put(n.sum, first + c, x, n.add_sum);
        put(n.y, first + c, (x - mean) * rstd * n.weight[c] + n.bias[c], n.add_y);
    }
    if (there && lane == 0) {
        put(n.mean, row, mean, n.add_mean);
        put(n.rstd, row, rstd, n.add_rstd);
    }
}
TR_CUDA_KERNEL_MEETS(tr_cuda_layer_norm);

extern "C" __global__ void tr_cuda_layer_norm_rows_backward(tr_cuda_norm_backward n) {
    int lane = threadIdx.x % LANES;
    int64_t row = blockIdx.x * (int64_t)ROWS + threadIdx.x / LANES;
    bool there = row < n.rows;
    row = there ? row : 0;
    const float *dy = n.dy + row * n.width, *x = n.x + row * n.width;
    float mean = n.mean[row], rstd = n.rstd[row], plain = 0, along = 0;
    for (int64_t c = lane; c < n.width; c += LANES) {
        float g = dy[c] * n.weight[c];
        plain += g;
        along += g * (x[c] - mean) * rstd;
    }
    plain = tr_cuda_warp_sum(plain) / n.width;
    along = tr_cuda_warp_sum(along) / n.width;
    for (int64_t c = lane; there && c < n.width; c += LANES) {
        float normal = (x[c] - mean) * rstd;
        tr_cuda_put(&n.dx[row * n.width + c],
                    rstd * (dy[c] * n.weight[c] - plain - normal * along), n.add_dx);
    }
}
TR_CUDA_KERNEL_MEETS(tr_cuda_layer_norm_rows_backward);

// A block sums 32 columns, DEEP threads each.
extern "C" __global__ void
tr_cuda_layer_norm_columns_backward(tr_cuda_norm_backward n) {
    int64_t c = blockIdx.x * (int64_t)LANES + threadIdx.x;
    float dweight = 0, dbias = 0;
    for (int64_t row = threadIdx.y; c < n.width && row < n.rows; row += DEEP) {
        float dy = n.dy[row * n.width + c], x = n.x[row * n.width + c];
        dweight += dy * (x - n.mean[row]) * n.rstd[row];
        dbias += dy;
    }
    dweight = tr_cuda_column_sum(dweight);
    dbias = tr_cuda_column_sum(dbias);
    if (threadIdx.y == 0 && c < n.width) {
        put(n.dweight, c, dweight, n.add_dweight);
        put(n.dbias, c, dbias, n.add_dbias);
    }
}
TR_CUDA_KERNEL_MEETS(tr_cuda_layer_norm_columns_backward);
