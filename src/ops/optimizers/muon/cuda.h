#ifndef TR_OPS_OPTIMIZERS_MUON_CUDA_H
#define TR_OPS_OPTIMIZERS_MUON_CUDA_H

#include "ops/flat/accumulate/cuda_gradients.h"

// buffer, direction: [count]
typedef struct tr_cuda_muon_args {
    tr_cuda_gradients g;
    float *buffer, *direction;
    int64_t count;
    float grad_scale, momentum, rate; // rate: 1 - momentum
    int32_t nesterov;
} tr_cuda_muon_args;

#endif
