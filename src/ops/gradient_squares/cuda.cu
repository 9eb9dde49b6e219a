#include "ops/gradient_squares/cuda.h"

#include "backend/cuda/device.cuh"

enum { THREADS = 256 };

// blockIdx.x: run of elements
static __global__ void sum_squares(const float *x, int64_t count, int64_t block,
                                   double *squares, bool add) {
    __shared__ double sums[THREADS];
    int64_t first = blockIdx.x * block;
    int64_t end = first + block < count ? first + block : count;
    double sum = 0;
    for (int64_t i = first + threadIdx.x; i < end; i += THREADS) {
        sum += (double)x[i] * x[i];
    }
    sums[threadIdx.x] = sum;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) {
            sums[threadIdx.x] += sums[threadIdx.x + half];
        }
    }
    if (threadIdx.x == 0) {
        squares[blockIdx.x] = add ? squares[blockIdx.x] + sums[0] : sums[0];
    }
}

void tr_cuda_squares(const float *x, int64_t count, int64_t block, double *squares,
                     void *stream) {
    dim3 blocks((unsigned)((count + block - 1) / block));
    TR_CUDA_BLOCKS(sum_squares, blocks, dim3(THREADS), stream, x, count, block, squares,
                   false);
}

// One block has all.
void tr_cuda_add_squares(const float *x, int64_t count, double *sum, void *stream) {
    TR_CUDA_BLOCKS(sum_squares, dim3(1), dim3(THREADS), stream, x, count, count, sum,
                   true);
}
