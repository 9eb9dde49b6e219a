#include "ops/nn/softmax/cuda.h"

#include "backend/cuda/real.cuh"

static __device__ float warp_top(float x) {
    for (int k = 16; k > 0; k /= 2) {
        x = fmaxf(x, __shfl_xor_sync(TR_CUDA_WARP, x, k));
    }
    return x;
}

template <class T> static __device__ void forward(const tr_cuda_softmax_args &a) {
    const T *x = (const T *)a.x + blockIdx.x * a.width;
    T *y = (T *)a.out + blockIdx.x * a.width;
    float top = -INFINITY, sum = 0;
    for (int64_t i = threadIdx.x; i < a.width; i += 32) {
        top = fmaxf(top, a.scale * tr_cuda_get(x[i]));
    }
    top = warp_top(top);
    for (int64_t i = threadIdx.x; i < a.width; i += 32) {
        sum += expf(a.scale * tr_cuda_get(x[i]) - top);
    }
    sum = tr_cuda_warp_sum(sum);
    for (int64_t i = threadIdx.x; i < a.width; i += 32) {
        float e = expf(a.scale * tr_cuda_get(x[i]) - top);
        tr_cuda_give(&y[i], e / sum, a.add);
    }
}

template <class T> static __device__ void backward(const tr_cuda_softmax_args &a) {
    const T *y = (const T *)a.x + blockIdx.x * a.width;
    const T *dy = (const T *)a.dy + blockIdx.x * a.width;
    T *dx = (T *)a.out + blockIdx.x * a.width;
    float sum = 0;
    for (int64_t i = threadIdx.x; i < a.width; i += 32) {
        sum += tr_cuda_get(dy[i]) * tr_cuda_get(y[i]);
    }
    sum = tr_cuda_warp_sum(sum);
    for (int64_t i = threadIdx.x; i < a.width; i += 32) {
        float d = tr_cuda_get(dy[i]) - sum;
        tr_cuda_give(&dx[i], a.scale * tr_cuda_get(y[i]) * d, a.add);
    }
}

extern "C" __global__ void tr_cuda_softmax(tr_cuda_softmax_args a) {
    TR_CUDA_BY_REAL(a.real, forward, a);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_softmax);

extern "C" __global__ void tr_cuda_softmax_backward(tr_cuda_softmax_args a) {
    TR_CUDA_BY_REAL(a.real, backward, a);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_softmax_backward);
