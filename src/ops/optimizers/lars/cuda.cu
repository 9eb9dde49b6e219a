#include "ops/optimizers/lars/cuda.h"

#include "ops/flat/accumulate/cuda_gradient.cuh"
#include "ops/flat/update/cuda_part.cuh"

// A block measures a part.
extern "C" __global__ void tr_cuda_lars_direction(tr_cuda_lars_args a) {
    double param = 0, direction = 0;
    TR_CUDA_PART_LOOP(i, a.parts) {
        float p = a.p[i], d = a.k.grad_scale * tr_cuda_gradient(a.g, i);
        param += (double)p * p;
        direction += (double)d * d;
    }
    tr_cuda_part_put(a.parts, param, direction);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_lars_direction);

extern "C" __global__ void tr_cuda_lars_update(tr_cuda_lars_args a) {
    const tr_cuda_lars &k = a.k;
    double trust =
        a.squares ? tr__lars_trust(sqrt(a.squares[0]), sqrt(a.squares[1]), a.ratio) : 1;
    float rate = (float)(k.rate * trust), from_g = k.ahead ? rate : 0;
    TR_CUDA_LOOP(i, a.count) {
        float p = a.p[i],
              grad = k.grad_scale * tr_cuda_gradient(a.g, i) + k.weight_decay * p;
        float step = rate * grad;
        if (a.buffer) {
            float value = k.keep * (k.first ? 0 : a.buffer[i]) + step;
            a.buffer[i] = value;
            step = from_g * grad + k.from_b * value;
        }
        a.p[i] = p - step;
    }
}
TR_CUDA_KERNEL(tr_cuda_lars_update);
