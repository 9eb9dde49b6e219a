#include "ops/nn/broadcast/cuda.h"

#include "backend/cuda/real.cuh"

template <class T> static __device__ void expand(const tr_cuda_broadcast_args &a) {
    const T *x = (const T *)a.x;
    T *y = (T *)a.y;
    TR_CUDA_LOOP(i, a.outer * a.times * a.inner) {
        int64_t from = i / a.inner / a.times * a.inner + i % a.inner;
        tr_cuda_give(&y[i], a.scale * tr_cuda_get(x[from]), a.add);
    }
}

// A thread for each sum; what it adds up is in parts, of which rounding takes less.
template <class T> static __device__ void sum(const tr_cuda_broadcast_args &a) {
    enum { PART = 64 };
    T *y = (T *)a.y;
    TR_CUDA_LOOP(i, a.outer * a.inner) {
        const T *x = (const T *)a.x + i / a.inner * a.times * a.inner + i % a.inner;
        float total = 0;
        for (int64_t n = 0; n < a.times; n += PART) {
            int64_t end = n + PART < a.times ? n + PART : a.times;
            float part = 0;
            for (int64_t k = n; k < end; k++) {
                part += tr_cuda_get(x[k * a.inner]);
            }
            total += part;
        }
        tr_cuda_give(&y[i], a.scale * total, a.add);
    }
}

extern "C" __global__ void tr_cuda_expand(tr_cuda_broadcast_args a) {
    TR_CUDA_BY_REAL(a.real, expand, a);
}
TR_CUDA_KERNEL(tr_cuda_expand);

extern "C" __global__ void tr_cuda_sum(tr_cuda_broadcast_args a) {
    TR_CUDA_BY_REAL(a.real, sum, a);
}
TR_CUDA_KERNEL(tr_cuda_sum);
