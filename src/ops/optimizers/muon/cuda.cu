#include "ops/optimizers/muon/cuda.h"

#include "ops/flat/accumulate/cuda_gradient.cuh"

extern "C" __global__ void tr_cuda_muon_direction(tr_cuda_muon_args a) {
    TR_CUDA_LOOP(i, a.count) {
        float grad = a.grad_scale * tr_cuda_gradient(a.g, i), mean = a.buffer[i];
        mean += a.rate * (grad - mean);
        a.buffer[i] = mean;
        a.direction[i] = a.nesterov ? grad + a.momentum * (mean - grad) : mean;
    }
}
TR_CUDA_KERNEL(tr_cuda_muon_direction);
