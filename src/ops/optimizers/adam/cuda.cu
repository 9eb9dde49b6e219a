#include "ops/optimizers/adam/cuda.h"

#include "ops/flat/accumulate/cuda_gradient.cuh"
#include "ops/optimizers/adam/cuda_step.cuh"

extern "C" __global__ void tr_cuda_adam_update(tr_cuda_adam_args a) {
    TR_CUDA_LOOP(i, a.count) {
        float m = a.m[i], v = a.v[i];
        a.p[i] = tr_cuda_adam_step(a.k, tr_cuda_gradient(a.g, i), a.p[i], &m, &v);
        a.m[i] = m;
        a.v[i] = v;
    }
}
TR_CUDA_KERNEL(tr_cuda_adam_update);
