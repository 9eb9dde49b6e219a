#include "ops/nn/bias/cuda.h"

#include "backend/cuda/vector.cuh"

template <class T> static __device__ void bias(const tr_cuda_add_bias_args &a) {
    const T *b = (const T *)a.b;
    int64_t width = a.width;
    tr_cuda_map(
        (T *)a.y, a.add, a.count,
        [b, width](int64_t i, float x) { return x + tr_cuda_get(b[i % width]); },
        (const T *)a.x);
}

extern "C" __global__ void tr_cuda_add_bias(tr_cuda_add_bias_args a) {
    TR_CUDA_BY_REAL(a.real, bias, a);
}
TR_CUDA_KERNEL(tr_cuda_add_bias);
