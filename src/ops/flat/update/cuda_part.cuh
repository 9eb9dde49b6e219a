// How a block goes through a part of a range, and measures it.
#ifndef TR_OPS_UPDATE_CUDA_PART_DEVICE_H
#define TR_OPS_UPDATE_CUDA_PART_DEVICE_H

#include "backend/cuda/sums.cuh"
#include "ops/flat/update/cuda_part.h"

// The thread's elements of the range, in the block's part.
#define TR_CUDA_PART_LOOP(i, parts)                                                    \
    for (int64_t i = tr_cuda_part_begin(parts) + threadIdx.x;                          \
         i < tr_cuda_part_end(parts); i += TR_CUDA_THREADS)                            \
        if (i >= 0)

static __device__ inline int64_t tr_cuda_part_begin(const tr_cuda_parts &p) {
    return blockIdx.x * (int64_t)TR_CUDA_PART - p.before;
}

static __device__ inline int64_t tr_cuda_part_end(const tr_cuda_parts &p) {
    int64_t end = tr_cuda_part_begin(p) + TR_CUDA_PART;
    return end < p.count ? end : p.count;
}

// The sums of squares of what the block's threads have.
static __device__ inline void tr_cuda_part_put(const tr_cuda_parts &p, double param,
                                               double direction) {
    param = tr_cuda_block_sum(param);
    direction = tr_cuda_block_sum(direction);
    if (threadIdx.x == 0) {
        p.squares[2 * blockIdx.x] = param;
        p.squares[2 * blockIdx.x + 1] = direction;
    }
}

#endif
