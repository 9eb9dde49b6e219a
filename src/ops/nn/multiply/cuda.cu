#include "ops/nn/multiply/cuda.h"

#include "backend/cuda/vector.cuh"

template <class T> static __device__ void multiply(const tr_cuda_multiply_args &a) {
    tr_cuda_map((T *)a.y, a.add, a.count,
                [](int64_t, float x, float y) { return x * y; }, (const T *)a.a,
                (const T *)a.b);
}

extern "C" __global__ void tr_cuda_multiply(tr_cuda_multiply_args a) {
    TR_CUDA_BY_REAL(a.real, multiply, a);
}
TR_CUDA_KERNEL(tr_cuda_multiply);
