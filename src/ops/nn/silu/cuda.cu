#include "ops/nn/silu/cuda.h"

#include "backend/cuda/math.cuh"
#include "backend/cuda/vector.cuh"

template <class T> static __device__ void forward(const tr_cuda_silu_args &a) {
    tr_cuda_map((T *)a.y, a.add, a.count,
                [](int64_t, float x) { return x * tr_cuda_logistic<T>(x); },
                (const T *)a.x);
}

template <class T>
static __device__ void backward(const tr_cuda_silu_backward_args &a) {
    tr_cuda_map((T *)a.dx, a.add, a.count,
                [](int64_t, float dy, float x) {
                    float s = tr_cuda_logistic<T>(x);
                    return dy * (s + x * s * (1 - s));
                },
                (const T *)a.dy, (const T *)a.x);
}

extern "C" __global__ void tr_cuda_silu(tr_cuda_silu_args a) {
    TR_CUDA_BY_REAL(a.real, forward, a);
}
TR_CUDA_KERNEL(tr_cuda_silu);

extern "C" __global__ void tr_cuda_silu_backward(tr_cuda_silu_backward_args a) {
    TR_CUDA_BY_REAL(a.real, backward, a);
}
TR_CUDA_KERNEL(tr_cuda_silu_backward);
