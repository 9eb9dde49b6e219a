#include "ops/nn/gelu/cuda.h"

#include "backend/cuda/math.cuh"
#include "backend/cuda/vector.cuh"

// sqrt(2 / pi), the factor of x^3 in the paper's approximation, and sqrt(1/2).
#define ROOT_2_OVER_PI 0.79788456080286535588f
#define CUBIC          0.044715f
#define ROOT_HALF      0.70710678118654752440f

// 2 u, where (1 + tanh u) / 2 is the factor of x: the logistic function of 2 u, which
// has no cancellation.
static __device__ float twice(float x) {
    return x * (2 * ROOT_2_OVER_PI + 2 * ROOT_2_OVER_PI * CUBIC * (x * x));
}

template <class T> static __device__ float tanh_gate(float x) {
    return tr_cuda_logistic<T>(twice(x));
}

// The normal distribution of x is `gate`; normal: e^(-x^2 / 2).
typedef struct erf_parts {
    float gate, normal;
} erf_parts;

// In 16 bits: erfc z = e^-z^2 (t P(t)) for z >= 0, where t = 1 / (1 + 0.52 z). The
// coefficients are fitted: within 2.2e-5 of the value up to z = 7, where it is 4e-23.
template <class T> static __device__ erf_parts erf_of(float x) {
    float normal = tr_cuda_exp<T>(-0.5f * x * x);
    if constexpr (sizeof(T) == 2) {
        float t = tr_cuda_reciprocal(1 + 0.52f * ROOT_HALF * fabsf(x));
        float p = 0.44056696f - 0.18531581f * t;
        p = 0.13545515f + p * t;
        p = 0.31783481f + p * t;
        p = 0.29146503f + p * t;
        float tail = 0.5f * t * p * normal;
        return {x < 0 ? tail : 1 - tail, normal};
    } else {
        return {0.5f * erfcf(-ROOT_HALF * x), normal};
    }
}

// Outside of [-10, 10] both forms have reached 0 and x.
static __device__ float bounded(float x) {
    return x < -10 ? -10 : x > 10 ? 10 : x; // NaN stays
}

template <class T> static __device__ float gelu(float x, bool exact) {
    if constexpr (sizeof(T) == 2) { // what overflows gives 0 and 1
        return x * (exact ? erf_of<T>(x).gate : tanh_gate<T>(x));
    } else {
        float b = bounded(x);
        return x * (exact ? erf_of<T>(b).gate : tanh_gate<T>(b));
    }
}

// That of an infinity is NaN: it has a product of it with 0.
template <class T> static __device__ float slope(float all, bool exact) {
    float x = fminf(fmaxf(all, -10), 10), none = 0 * all;
    if (exact) {
        erf_parts of = erf_of<T>(x);
        return of.gate + x * (0.5f * ROOT_2_OVER_PI) * of.normal + none;
    }
    float e = tr_cuda_exp<T>(-fabsf(twice(x)));
    float high = tr_cuda_inverse<T>(1 + e), low = e * high;
    float inner = 2 * ROOT_2_OVER_PI + 6 * ROOT_2_OVER_PI * CUBIC * (x * x);
    return (x < 0 ? low : high) + x * inner * (low * high) + none;
}

template <class T, bool EXACT>
static __device__ void forward(const tr_cuda_gelu_args &a) {
    tr_cuda_map((T *)a.y, a.add, a.count,
                [](int64_t, float x) { return gelu<T>(x, EXACT); }, (const T *)a.x);
}

template <class T, bool EXACT>
static __device__ void backward(const tr_cuda_gelu_backward_args &a) {
    tr_cuda_map((T *)a.dx, a.add, a.count,
                [](int64_t, float dy, float x) { return dy * slope<T>(x, EXACT); },
                (const T *)a.dy, (const T *)a.x);
}

template <class T> static __device__ void forward_form(const tr_cuda_gelu_args &a) {
    a.exact ? forward<T, true>(a) : forward<T, false>(a);
}

template <class T>
static __device__ void backward_form(const tr_cuda_gelu_backward_args &a) {
    a.exact ? backward<T, true>(a) : backward<T, false>(a);
}

extern "C" __global__ void __launch_bounds__(TR_CUDA_THREADS, 5)
    tr_cuda_gelu(tr_cuda_gelu_args a) {
    TR_CUDA_BY_REAL(a.real, forward_form, a);
}
TR_CUDA_KERNEL(tr_cuda_gelu);

extern "C" __global__ void __launch_bounds__(TR_CUDA_THREADS, 5)
    tr_cuda_gelu_backward(tr_cuda_gelu_backward_args a) {
    TR_CUDA_BY_REAL(a.real, backward_form, a);
}
TR_CUDA_KERNEL(tr_cuda_gelu_backward);
