#include "ops/gradient_squares/cuda.h"

#include "backend/cuda/device.cuh"

enum { THREADS = TR_CUDA_THREADS };

// blockIdx.x: run of elements
extern "C" __global__ void tr_cuda_squares(tr_cuda_squares_args a) {
    __shared__ double sums[THREADS];
    int64_t first = blockIdx.x * a.block;
    int64_t end = first + a.block < a.count ? first + a.block : a.count;
    double sum = 0;
    for (int64_t i = first + threadIdx.x; i < end; i += THREADS) {
        sum += (double)a.x[i] * a.x[i];
    }
    sums[threadIdx.x] = sum;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) {
            sums[threadIdx.x] += sums[threadIdx.x + half];
        }
    }
    if (threadIdx.x == 0) {
        double *to = &a.squares[blockIdx.x];
        *to = a.add ? *to + sums[0] : sums[0];
    }
}
TR_CUDA_KERNEL_MEETS(tr_cuda_squares);
