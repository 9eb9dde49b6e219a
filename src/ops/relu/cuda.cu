#include "ops/relu/cuda.h"

#include "backend/cuda/real.cuh"

template <class T> static __device__ void forward(const tr_cuda_relu_args &a) {
    const T *x = (const T *)a.x;
    T *y = (T *)a.y;
    TR_CUDA_LOOP(i, a.count) {
        float value = tr_cuda_get(x[i]);
        tr_cuda_give(&y[i], value < 0 ? 0 : value, a.add); // NaN stays
    }
}

template <class T>
static __device__ void backward(const tr_cuda_relu_backward_args &a) {
    const T *dy = (const T *)a.dy, *y = (const T *)a.y;
    T *dx = (T *)a.dx;
    TR_CUDA_LOOP(i, a.count) {
        tr_cuda_give(&dx[i], tr_cuda_get(y[i]) > 0 ? tr_cuda_get(dy[i]) : 0, a.add);
    }
}

extern "C" __global__ void tr_cuda_relu(tr_cuda_relu_args a) {
    TR_CUDA_BY_REAL(a.real, forward, a);
}
TR_CUDA_KERNEL(tr_cuda_relu);

extern "C" __global__ void tr_cuda_relu_backward(tr_cuda_relu_backward_args a) {
    TR_CUDA_BY_REAL(a.real, backward, a);
}
TR_CUDA_KERNEL(tr_cuda_relu_backward);
