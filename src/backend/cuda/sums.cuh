// Sums over threads, in an order that does not depend on which of them comes first.
#ifndef TR_BACKEND_CUDA_SUMS_H
#define TR_BACKEND_CUDA_SUMS_H

#include "backend/cuda/device.cuh"

// Of a block of TR_CUDA_LANES x TR_CUDA_COLUMN_THREADS threads: the sums over
// threadIdx.y, in the threads whose threadIdx.y is 0. All threads of the block call it.
template <class T> static __device__ inline T tr_cuda_column_sum(T x) {
    __shared__ T sums[TR_CUDA_COLUMN_THREADS][TR_CUDA_LANES];
    sums[threadIdx.y][threadIdx.x] = x;
    __syncthreads();
    for (int deep = 1; threadIdx.y == 0 && deep < TR_CUDA_COLUMN_THREADS; deep++) {
        x += sums[deep][threadIdx.x];
    }
    __syncthreads();
    return x;
}

// Of a block of TR_CUDA_THREADS threads: the sum over all, in all of them.
template <class T> static __device__ inline T tr_cuda_block_sum(T x) {
    __shared__ T sums[TR_CUDA_THREADS];
    int t = threadIdx.x;
    sums[t] = x;
    for (int half = TR_CUDA_THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (t < half) {
            sums[t] += sums[t + half];
        }
    }
    __syncthreads();
    x = sums[0];
    __syncthreads();
    return x;
}

#endif
