#include "ops/optimizers/sgd/cuda.h"

#include "ops/flat/accumulate/cuda_gradient.cuh"

extern "C" __global__ void tr_cuda_sgd_update(tr_cuda_sgd_args a) {
    const tr_cuda_sgd &k = a.k;
    TR_CUDA_LOOP(i, a.count) {
        float p = a.p[i],
              step = k.grad_scale * tr_cuda_gradient(a.g, i) + k.weight_decay * p;
        if (a.buffer) {
            float value = k.keep * (k.first ? 0 : a.buffer[i]) + k.take * step;
            step = k.from_g * step + k.from_b * value;
            a.buffer[i] = value;
        }
        a.p[i] = p - k.lr * step;
    }
}
TR_CUDA_KERNEL(tr_cuda_sgd_update);
