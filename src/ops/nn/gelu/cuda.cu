#include "ops/nn/gelu/cuda.h"

#include "backend/cuda/vector.cuh"

// sqrt(2 / pi), the factor of x^3 in the paper's approximation, and sqrt(1/2).
#define ROOT_2_OVER_PI 0.79788456080286535588f
#define CUBIC          0.044715f
#define ROOT_HALF      0.70710678118654752440f

// (1 + tanh u) / 2 is the logistic function of 2 u: no cancellation.
static __device__ float tanh_gate(float x) {
    return 1 / (1 + expf(-2 * ROOT_2_OVER_PI * x * (1 + CUBIC * x * x)));
}

static __device__ float erf_gate(float x) {
    return 0.5f * erfcf(-ROOT_HALF * x);
}

// Outside of [-10, 10] both forms have reached 0 and x.
static __device__ float bounded(float x) {
    return x < -10 ? -10 : x > 10 ? 10 : x; // NaN stays
}

// That of an infinity is NaN: it has a product of it with 0.
static __device__ float slope(float all, bool exact) {
    float x = bounded(all), none = 0 * all;
    if (exact) {
        return erf_gate(x) + x * 0.5f * ROOT_2_OVER_PI * expf(-0.5f * x * x) + none;
    }
    float twice = 2 * ROOT_2_OVER_PI * x * (1 + CUBIC * x * x);
    float e = expf(-fabsf(twice)), high = 1 / (1 + e), low = e * high;
    float inner = 2 * ROOT_2_OVER_PI * (1 + 3 * CUBIC * x * x);
    return (x < 0 ? low : high) + x * inner * (low * high) + none;
}

template <class T> static __device__ void forward(const tr_cuda_gelu_args &a) {
    tr_cuda_map((T *)a.y, a.add, a.count,
                [&](int64_t, float x) {
                    return x * (a.exact ? erf_gate(x) : tanh_gate(bounded(x)));
                },
                (const T *)a.x);
}

template <class T>
static __device__ void backward(const tr_cuda_gelu_backward_args &a) {
    tr_cuda_map((T *)a.dx, a.add, a.count,
                [&](int64_t, float dy, float x) { return dy * slope(x, a.exact); },
                (const T *)a.dy, (const T *)a.x);
}

extern "C" __global__ void tr_cuda_gelu(tr_cuda_gelu_args a) {
    TR_CUDA_BY_REAL(a.real, forward, a);
}
TR_CUDA_KERNEL(tr_cuda_gelu);

extern "C" __global__ void tr_cuda_gelu_backward(tr_cuda_gelu_backward_args a) {
    TR_CUDA_BY_REAL(a.real, backward, a);
}
TR_CUDA_KERNEL(tr_cuda_gelu_backward);
