// New keys and values go to their places in the cache.
#include "ops/nn/attention/cuda.h"

#include "backend/cuda/real.cuh"

template <class T> static __device__ void append(const tr_cuda_append_args &a) {
    const T *qkv = (const T *)a.qkv;
    T *cache = (T *)a.cache;
    TR_CUDA_LOOP(i, a.count) {
        int64_t d = i % a.depth, head = i / a.depth % a.heads;
        int64_t row = i / a.depth / a.heads, sample = row / a.context;
        int64_t place = (a.position + row % a.context) % a.room;
        cache[((sample * a.heads + head) * a.room + place) * a.depth + d] =
            qkv[row * a.pitch + a.keys + head * a.depth + d];
    }
}

extern "C" __global__ void tr_cuda_attend_append(tr_cuda_append_args args) {
    TR_CUDA_BY_REAL(args.real, append, args);
}
TR_CUDA_KERNEL(tr_cuda_attend_append);
