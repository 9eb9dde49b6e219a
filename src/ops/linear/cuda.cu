#include "ops/linear/cuda.h"

#include "backend/cuda/sums.cuh"

enum { LANES = TR_CUDA_LANES, DEEP = TR_CUDA_COLUMN_THREADS };

extern "C" __global__ void tr_cuda_bias(tr_cuda_bias_args a) {
    TR_CUDA_LOOP(i, a.count) {
        float value = a.bias ? a.y[i] + a.bias[i % a.width] : a.y[i];
        a.y[i] = a.relu && value < 0 ? 0 : value;
    }
}
TR_CUDA_KERNEL(tr_cuda_bias);

// Of the grid tr__cuda_columns.
extern "C" __global__ void tr_cuda_column_sums(tr_cuda_column_sums_args a) {
    int64_t c = blockIdx.x * (int64_t)LANES + threadIdx.x;
    float sum = 0;
    for (int64_t row = threadIdx.y; c < a.width && row < a.rows; row += DEEP) {
        sum += a.x[row * a.width + c];
    }
    sum = tr_cuda_column_sum(sum);
    if (threadIdx.y == 0 && c < a.width) {
        tr_cuda_put(&a.sums[c], sum, a.add);
    }
}
TR_CUDA_KERNEL_MEETS(tr_cuda_column_sums);
