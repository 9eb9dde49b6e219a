#include "ops/nn/tanh/cuda.h"

#include "backend/cuda/vector.cuh"

template <class T> static __device__ void forward(const tr_cuda_tanh_args &a) {
    tr_cuda_map((T *)a.y, a.add, a.count, [](int64_t, float x) { return tanhf(x); },
                (const T *)a.x);
}

template <class T>
static __device__ void backward(const tr_cuda_tanh_backward_args &a) {
    tr_cuda_map((T *)a.dx, a.add, a.count,
                [](int64_t, float dy, float y) { return dy * ((1 - y) * (1 + y)); },
                (const T *)a.dy, (const T *)a.y);
}

extern "C" __global__ void tr_cuda_tanh(tr_cuda_tanh_args a) {
    TR_CUDA_BY_REAL(a.real, forward, a);
}
TR_CUDA_KERNEL(tr_cuda_tanh);

extern "C" __global__ void tr_cuda_tanh_backward(tr_cuda_tanh_backward_args a) {
    TR_CUDA_BY_REAL(a.real, backward, a);
}
TR_CUDA_KERNEL(tr_cuda_tanh_backward);
