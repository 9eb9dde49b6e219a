// Sums over threads, in an order that does not depend on which of them comes first; and
// the largest of what they have.
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

// Likewise of N columns for each threadIdx.x, the N next to each other: column
// N threadIdx.x + threadIdx.y, in the threads whose threadIdx.y is below N.
template <int N> static __device__ inline float tr_cuda_columns_sum(const float *x) {
    __shared__ float sums[TR_CUDA_COLUMN_THREADS][N][TR_CUDA_LANES];
    static_assert(N <= TR_CUDA_COLUMN_THREADS, "each column has a thread");
    TR_CUDA_UNROLL
    for (int k = 0; k < N; k++) {
        sums[threadIdx.y][k][threadIdx.x] = x[k];
    }
    __syncthreads();
    float sum = 0;
    for (int deep = 0; threadIdx.y < N && deep < TR_CUDA_COLUMN_THREADS; deep++) {
        sum += sums[deep][threadIdx.y][threadIdx.x];
    }
    __syncthreads();
    return sum;
}

// Of a block of THREADS threads: the sum over all, in all of them.
template <class T, int THREADS = TR_CUDA_THREADS>
static __device__ inline T tr_cuda_block_sum(T x) {
    enum { WARPS = THREADS / TR_CUDA_LANES };
    __shared__ T sums[WARPS];
    x = tr_cuda_warp_sum(x);
    if (threadIdx.x % TR_CUDA_LANES == 0) {
        sums[threadIdx.x / TR_CUDA_LANES] = x;
    }
    __syncthreads();
    x = 0;
    for (int warp = 0; warp < WARPS; warp++) {
        x += sums[warp];
    }
    __syncthreads();
    return x;
}

// Of a block of TR_CUDA_THREADS likewise the largest; NaN is passed over.
static __device__ inline float tr_cuda_block_largest(float x) {
    enum { WARPS = TR_CUDA_THREADS / TR_CUDA_LANES };
    __shared__ float largest[WARPS];
    for (int k = TR_CUDA_LANES / 2; k > 0; k /= 2) {
        x = fmaxf(x, __shfl_xor_sync(TR_CUDA_WARP, x, k));
    }
    if (threadIdx.x % TR_CUDA_LANES == 0) {
        largest[threadIdx.x / TR_CUDA_LANES] = x;
    }
    __syncthreads();
    for (int warp = 0; warp < WARPS; warp++) {
        x = fmaxf(x, largest[warp]);
    }
    __syncthreads();
    return x;
}

#endif
