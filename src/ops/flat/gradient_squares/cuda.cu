#include "ops/flat/gradient_squares/cuda.h"

#include "backend/cuda/sums.cuh"
#include "ops/flat/accumulate/cuda_gradient.cuh"

// blockIdx.x: run of elements
extern "C" __global__ void tr_cuda_squares(tr_cuda_squares_args a) {
    int64_t first = blockIdx.x * a.block;
    int64_t end = first + a.block < a.count ? first + a.block : a.count;
    double sum = 0;
    for (int64_t i = first + threadIdx.x; i < end; i += TR_CUDA_THREADS) {
        float x = tr_cuda_gradient(a.x, i);
        sum += (double)x * x;
    }
    sum = tr_cuda_block_sum(sum);
    if (threadIdx.x == 0) {
        double *to = &a.squares[blockIdx.x];
        *to = a.add ? *to + sum : sum;
    }
}
TR_CUDA_KERNEL_MEETS(tr_cuda_squares);
