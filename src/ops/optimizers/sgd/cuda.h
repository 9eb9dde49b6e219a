#ifndef TR_OPS_OPTIMIZERS_SGD_CUDA_H
#define TR_OPS_OPTIMIZERS_SGD_CUDA_H

#include "ops/flat/accumulate/cuda_gradients.h"

// tr_sgd_numbers, rounded.
typedef struct tr_cuda_sgd {
    float grad_scale, weight_decay, lr, keep, take, from_g, from_b;
    int32_t first; // the buffer may hold anything
} tr_cuda_sgd;

// p, g, buffer: [count]; buffer NULL: there is no momentum
typedef struct tr_cuda_sgd_args {
    tr_cuda_sgd k;
    float *p;
    tr_cuda_gradients g;
    float *buffer;
    int64_t count;
} tr_cuda_sgd_args;

#endif
