// Rows sorted by id: blocks sort keys of their own, then several sorted runs at a time
// become one. All keys differ, so each has one place.
#include "ops/nn/embedding/cuda.h"

#include "backend/cuda/device.cuh"

// Ids may be negative, keys are not: the sign becomes the highest bit's opposite.
static __device__ inline uint64_t key_of(const int32_t *ids, int64_t row) {
    return (uint64_t)((uint32_t)ids[row] ^ 0x80000000u) << 32 | (uint64_t)row;
}

// How many of `count` ascending keys are below `key`.
static __device__ inline int64_t count_below(const uint64_t *keys, int64_t count,
                                             uint64_t key) {
    int64_t low = 0;
    while (low < count) {
        int64_t middle = (low + count) / 2;
        if (keys[middle] < key) {
            low = middle + 1;
        } else {
            count = middle;
        }
    }
    return low;
}

// A block has TR_CUDA_THREADS rows; each thread finds the place of its own.
extern "C" __global__ void tr_cuda_embed_sort(tr_cuda_embed_order_args a) {
    __shared__ uint64_t keys[TR_CUDA_THREADS];
    int64_t first = (int64_t)blockIdx.x * TR_CUDA_THREADS, row = first + threadIdx.x;
    int count =
        a.rows - first < TR_CUDA_THREADS ? (int)(a.rows - first) : (int)TR_CUDA_THREADS;
    uint64_t key = row < a.rows ? key_of(a.ids, row) : 0;
    keys[threadIdx.x] = key;
    __syncthreads();
    int place = 0;
    for (int i = 0; i < count; i++) {
        place += keys[i] < key;
    }
    if (row < a.rows) {
        a.to[first + place] = key;
    }
}
TR_CUDA_KERNEL_MEETS(tr_cuda_embed_sort);

// A key's place in the merged run is what is below it in its own run and in the others.
extern "C" __global__ void tr_cuda_embed_merge(tr_cuda_embed_order_args a) {
    TR_CUDA_LOOP(i, a.rows) {
        uint64_t key = a.from[i];
        int64_t own = i / a.run, group = own - own % TR_CUDA_EMBED_WAYS;
        int64_t place = group * a.run + i % a.run;
        for (int64_t run = group; run < group + TR_CUDA_EMBED_WAYS; run++) {
            int64_t begin = run * a.run, left = a.rows - begin;
            if (run != own && left > 0) {
                place += count_below(a.from + begin, left < a.run ? left : a.run, key);
            }
        }
        a.to[place] = key;
    }
}
TR_CUDA_KERNEL(tr_cuda_embed_merge);

// Where the rows of each id begin and end. No row is 2^32 - 1.
extern "C" __global__ void tr_cuda_embed_runs(tr_cuda_embed_order_args a) {
    TR_CUDA_LOOP(i, a.rows) {
        uint64_t least = a.from[i] >> 32 << 32;
        a.runs[i].first = (int32_t)count_below(a.from, a.rows, least);
        a.runs[i].end = (int32_t)count_below(a.from, a.rows, least | 0xffffffffu);
    }
}
TR_CUDA_KERNEL(tr_cuda_embed_runs);
