#include "ops/gelu/cuda.h"

#include "backend/cuda/device.cuh"

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

static __device__ float slope(float x, bool exact) {
    x = bounded(x);
    if (exact) {
        return erf_gate(x) + x * 0.5f * ROOT_2_OVER_PI * expf(-0.5f * x * x);
    }
    float twice = 2 * ROOT_2_OVER_PI * x * (1 + CUBIC * x * x);
    float e = expf(-fabsf(twice)), high = 1 / (1 + e), low = e * high;
    float inner = 2 * ROOT_2_OVER_PI * (1 + 3 * CUBIC * x * x);
    return (x < 0 ? low : high) + x * inner * (low * high);
}

static __global__ void gelu(const float *x, float *y, int64_t count, bool exact,
                            bool add) {
    TR_CUDA_LOOP(i, count) {
        float gate = exact ? erf_gate(x[i]) : tanh_gate(bounded(x[i]));
        tr_cuda_put(&y[i], x[i] * gate, add);
    }
}

static __global__ void gelu_backward(const float *dy, const float *x, float *dx,
                                     int64_t count, bool exact, bool add) {
    TR_CUDA_LOOP(i, count) {
        tr_cuda_put(&dx[i], dy[i] * slope(x[i], exact), add);
    }
}

void tr_cuda_gelu(const float *x, float *y, int64_t count, bool exact, bool add,
                  void *stream) {
    TR_CUDA_EACH(gelu, count, stream, x, y, count, exact, add);
}

void tr_cuda_gelu_backward(const float *dy, const float *x, float *dx, int64_t count,
                           bool exact, bool add, void *stream) {
    TR_CUDA_EACH(gelu_backward, count, stream, dy, x, dx, count, exact, add);
}
