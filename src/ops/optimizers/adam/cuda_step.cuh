#ifndef TR_OPS_OPTIMIZERS_ADAM_CUDA_STEP_H
#define TR_OPS_OPTIMIZERS_ADAM_CUDA_STEP_H

#include "ops/optimizers/adam/cuda.h"

// Of one element. Returns the parameter; m and v become what they are then.
static __device__ inline float tr_cuda_adam_step(const tr_cuda_adam &k, float gradient,
                                                 float p, float *m, float *v) {
    float grad = k.grad_scale * gradient + k.l2 * p;
    float mean = *m + k.m_rate * (grad - *m);
    float square = k.beta2 * *v + k.v_rate * grad * grad;
    float denominator = sqrtf(square) * k.over_root_bias2 + k.eps;
    *m = mean;
    *v = square;
    return k.keep * p - k.step * mean / denominator;
}

#endif
