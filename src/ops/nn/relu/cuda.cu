#include "ops/nn/relu/cuda.h"

#include "backend/cuda/vector.cuh"

template <class T> static __device__ void forward(const tr_cuda_relu_args &a) {
    tr_cuda_map((T *)a.y, a.add, a.count,
                [](int64_t, float x) { return x < 0 ? 0 : x; }, // NaN stays
                (const T *)a.x);
}

template <class T>
static __device__ void backward(const tr_cuda_relu_backward_args &a) {
    tr_cuda_map((T *)a.dx, a.add, a.count,
                [](int64_t, float dy, float y) { return y <= 0 ? 0 : dy; },
                (const T *)a.dy, (const T *)a.y);
}

extern "C" __global__ void tr_cuda_relu(tr_cuda_relu_args a) {
    TR_CUDA_BY_REAL(a.real, forward, a);
}
TR_CUDA_KERNEL(tr_cuda_relu);

extern "C" __global__ void tr_cuda_relu_backward(tr_cuda_relu_backward_args a) {
    TR_CUDA_BY_REAL(a.real, backward, a);
}
TR_CUDA_KERNEL(tr_cuda_relu_backward);
