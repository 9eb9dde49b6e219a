#include "ops/adam/cuda.h"

#include "backend/cuda/device.cuh"

static __global__ void update(tr_cuda_adam k, float *p, const float *g, float *m,
                              float *v, int64_t count) {
    TR_CUDA_LOOP(i, count) {
        float grad = k.grad_scale * g[i] + k.l2 * p[i];
        float mean = m[i] + k.m_rate * (grad - m[i]);
        float square = k.beta2 * v[i] + k.v_rate * grad * grad;
        float denominator = sqrtf(square) * k.over_root_bias2 + k.eps;
        p[i] = k.keep * p[i] - k.step * mean / denominator;
        m[i] = mean;
        v[i] = square;
    }
}

void tr_cuda_adam_update(tr_cuda_adam k, float *p, const float *g, float *m, float *v,
                         int64_t count, void *stream) {
    TR_CUDA_EACH(update, count, stream, k, p, g, m, v, count);
}
