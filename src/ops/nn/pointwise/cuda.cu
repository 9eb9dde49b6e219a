#include "ops/nn/pointwise/cuda.h"

#include "backend/cuda/real.cuh"

#include <tranche/extend/graph.h>

// NaN stays.
static __device__ float clamped(float x, float low, float high) {
    return x < low ? low : x > high ? high : x;
}

static __device__ float logistic(float x) {
    return 1 / (1 + expf(-x));
}

static __device__ float value(int kind, float x, float a, float b) {
    switch (kind) {
    case TR_POINTWISE_SIGMOID:
        return logistic(x);
    case TR_POINTWISE_CLAMP:
    case TR_POINTWISE_HARDTANH:
        return clamped(x, a, b);
    case TR_POINTWISE_LEAKY_RELU:
        return x > 0 ? x : a * x;
    case TR_POINTWISE_ELU:
        return x > 0 ? x : a * expm1f(x);
    case TR_POINTWISE_HARDSIGMOID:
        return clamped(x + 3, 0, 6) / 6;
    case TR_POINTWISE_HARDSWISH:
        return x * clamped(x + 3, 0, 6) / 6;
    case TR_POINTWISE_SOFTPLUS:
        return a * x > b ? x : log1pf(expf(a * x)) / a;
    case TR_POINTWISE_EXP:
        return expf(x);
    case TR_POINTWISE_LOG:
        return logf(x);
    case TR_POINTWISE_SQRT:
        return sqrtf(x);
    case TR_POINTWISE_POWER:
        return powf(x, a);
    case TR_POINTWISE_LINEAR:
        return a * x + b;
    default: // TR_POINTWISE_ABS
        return fabsf(x);
    }
}

static __device__ float slope(int kind, float x, float a, float b) {
    float s = 0;
    switch (kind) {
    case TR_POINTWISE_SIGMOID:
        s = logistic(x);
        return s * (1 - s);
    case TR_POINTWISE_CLAMP:
        return x < a || x > b ? 0 : 1;
    case TR_POINTWISE_HARDTANH:
        return x <= a || x >= b ? 0 : 1;
    case TR_POINTWISE_LEAKY_RELU:
        return x > 0 ? 1 : a;
    case TR_POINTWISE_ELU:
        return x > 0 ? 1 : a * expf(x);
    case TR_POINTWISE_HARDSIGMOID:
        return x <= -3 || x >= 3 ? 0 : 1.0f / 6;
    case TR_POINTWISE_HARDSWISH:
        return x <= -3 ? 0 : x >= 3 ? 1 : x / 3 + 0.5f;
    case TR_POINTWISE_SOFTPLUS:
        return a * x > b ? 1 : logistic(a * x);
    case TR_POINTWISE_EXP:
        return expf(x);
    case TR_POINTWISE_LOG:
        return 1 / x;
    case TR_POINTWISE_SQRT:
        return 0.5f / sqrtf(x);
    case TR_POINTWISE_POWER:
        return a == 0 ? 0 : a * powf(x, a - 1);
    case TR_POINTWISE_LINEAR:
        return a;
    default: // TR_POINTWISE_ABS
        return x > 0 ? 1.0f : x < 0 ? -1.0f : 0.0f;
    }
}

template <class T> static __device__ void forward(const tr_cuda_pointwise_args &a) {
    const T *x = (const T *)a.x;
    T *y = (T *)a.y;
    TR_CUDA_LOOP(i, a.count) {
        tr_cuda_give(&y[i], value(a.kind, tr_cuda_get(x[i]), a.a, a.b), a.add);
    }
}

template <class T> static __device__ void backward(const tr_cuda_pointwise_args &a) {
    const T *x = (const T *)a.x, *dy = (const T *)a.dy;
    T *dx = (T *)a.y;
    TR_CUDA_LOOP(i, a.count) {
        float d = slope(a.kind, tr_cuda_get(x[i]), a.a, a.b);
        tr_cuda_give(&dx[i], tr_cuda_get(dy[i]) * d, a.add);
    }
}

extern "C" __global__ void tr_cuda_pointwise(tr_cuda_pointwise_args a) {
    TR_CUDA_BY_REAL(a.real, forward, a);
}
TR_CUDA_KERNEL(tr_cuda_pointwise);

extern "C" __global__ void tr_cuda_pointwise_backward(tr_cuda_pointwise_args a) {
    TR_CUDA_BY_REAL(a.real, backward, a);
}
TR_CUDA_KERNEL(tr_cuda_pointwise_backward);
