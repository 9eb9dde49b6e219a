#include "ops/optimizers/lion/cuda.h"

#include "ops/flat/accumulate/cuda_gradient.cuh"

extern "C" __global__ void tr_cuda_lion_update(tr_cuda_lion_args a) {
    const tr_cuda_lion &k = a.k;
    TR_CUDA_LOOP(i, a.count) {
        float m = a.m[i], grad = k.grad_scale * tr_cuda_gradient(a.g, i);
        float toward = k.beta1 * m + k.g_share * grad;
        float step = toward > 0 ? k.lr : toward < 0 ? -k.lr : toward; // NaN stays
        a.p[i] = k.keep * a.p[i] - step;
        a.m[i] = k.beta2 * m + k.m_rate * grad;
    }
}
TR_CUDA_KERNEL(tr_cuda_lion_update);
