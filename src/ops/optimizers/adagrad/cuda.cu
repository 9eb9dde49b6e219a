#include "ops/optimizers/adagrad/cuda.h"

#include "ops/flat/accumulate/cuda_gradient.cuh"

extern "C" __global__ void tr_cuda_adagrad_update(tr_cuda_adagrad_args a) {
    const tr_cuda_adagrad &k = a.k;
    TR_CUDA_LOOP(i, a.count) {
        float p = a.p[i],
              grad = k.grad_scale * tr_cuda_gradient(a.g, i) + k.weight_decay * p;
        float squares = (k.first ? k.initial : a.sum[i]) + grad * grad;
        a.p[i] = p - k.lr * grad / (sqrtf(squares) + k.eps);
        a.sum[i] = squares;
    }
}
TR_CUDA_KERNEL(tr_cuda_adagrad_update);
