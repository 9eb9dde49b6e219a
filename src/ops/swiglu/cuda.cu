#include "ops/swiglu/cuda.h"

#include "backend/cuda/real.cuh"

static __device__ float sigmoid(float x) {
    return 1 / (1 + expf(-x));
}

template <class T> static __device__ void forward(const tr_cuda_swiglu_args &a) {
    const T *h = (const T *)a.h;
    T *y = (T *)a.y;
    TR_CUDA_LOOP(i, a.rows * a.width) {
        const T *pair = h + i / a.width * 2 * a.width + i % a.width;
        float gate = tr_cuda_get(pair[0]), up = tr_cuda_get(pair[a.width]);
        tr_cuda_give(&y[i], gate * sigmoid(gate) * up, a.add);
    }
}

// silu'(x) = s + x s (1 - s), where s is the logistic function of x.
template <class T> static __device__ void backward(const tr_cuda_swiglu_args &a) {
    const T *h = (const T *)a.h, *dy = (const T *)a.dy;
    T *dh = (T *)a.dh;
    TR_CUDA_LOOP(i, a.rows * a.width) {
        int64_t at = i / a.width * 2 * a.width + i % a.width;
        float gate = tr_cuda_get(h[at]), up = tr_cuda_get(h[at + a.width]);
        float d = tr_cuda_get(dy[i]), s = sigmoid(gate), silu = gate * s;
        tr_cuda_give(&dh[at], d * up * (s + silu * (1 - s)), a.add);
        tr_cuda_give(&dh[at + a.width], d * silu, a.add);
    }
}

extern "C" __global__ void tr_cuda_swiglu(tr_cuda_swiglu_args a) {
    TR_CUDA_BY_REAL(a.real, forward, a);
}
TR_CUDA_KERNEL(tr_cuda_swiglu);

extern "C" __global__ void tr_cuda_swiglu_backward(tr_cuda_swiglu_args a) {
    TR_CUDA_BY_REAL(a.real, backward, a);
}
TR_CUDA_KERNEL(tr_cuda_swiglu_backward);
