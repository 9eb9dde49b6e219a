#include "ops/optimizers/lamb/cuda.h"

#include "ops/flat/accumulate/cuda_gradient.cuh"
#include "ops/flat/update/cuda_part.cuh"
#include "ops/optimizers/lamb/trust.h"

static __device__ float direction_of(const tr_cuda_lamb &k, float p, float m, float v) {
    return k.m_scale * m / (k.v_scale * sqrtf(v) + k.eps) + k.decay * p;
}

// A block measures a part.
extern "C" __global__ void tr_cuda_lamb_direction(tr_cuda_lamb_args a) {
    const tr_cuda_lamb &k = a.k;
    double param = 0, direction = 0;
    TR_CUDA_PART_LOOP(i, a.parts) {
        float p = a.p[i], m = a.m[i], grad = k.grad_scale * tr_cuda_gradient(a.g, i);
        float mean = m + k.m_rate * (grad - m);
        float square = k.beta2 * a.v[i] + k.v_rate * grad * grad;
        float d = direction_of(k, p, mean, square);
        a.m[i] = mean;
        a.v[i] = square;
        param += (double)p * p;
        direction += (double)d * d;
    }
    tr_cuda_part_put(a.parts, param, direction);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_lamb_direction);

extern "C" __global__ void tr_cuda_lamb_update(tr_cuda_lamb_args a) {
    double trust = a.squares ? tr__lamb_trust(sqrt(a.squares[0]), sqrt(a.squares[1]),
                                              a.least, a.most)
                             : 1;
    float step = (float)(a.k.step * trust);
    TR_CUDA_LOOP(i, a.count) {
        a.p[i] = a.p[i] - step * direction_of(a.k, a.p[i], a.m[i], a.v[i]);
    }
}
TR_CUDA_KERNEL(tr_cuda_lamb_update);
