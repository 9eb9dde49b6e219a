#include "ops/optimizers/adam/cuda.h"

#include "ops/flat/accumulate/cuda_gradient.cuh"

extern "C" __global__ void tr_cuda_adam_update(tr_cuda_adam_args a) {
    const tr_cuda_adam &k = a.k;
    TR_CUDA_LOOP(i, a.count) {
        float p = a.p[i], m = a.m[i], v = a.v[i];
        float grad = k.grad_scale * tr_cuda_gradient(a.g, i) + k.l2 * p;
        float mean = m + k.m_rate * (grad - m);
        float square = k.beta2 * v + k.v_rate * grad * grad;
        float denominator = sqrtf(square) * k.over_root_bias2 + k.eps;
        a.p[i] = k.keep * p - k.step * mean / denominator;
        a.m[i] = mean;
        a.v[i] = square;
    }
}
TR_CUDA_KERNEL(tr_cuda_adam_update);
