#ifndef TR_OPS_OPTIMIZERS_ADAGRAD_CUDA_H
#define TR_OPS_OPTIMIZERS_ADAGRAD_CUDA_H

#include "ops/flat/accumulate/cuda_gradients.h"

// tr_adagrad_numbers, rounded.
typedef struct tr_cuda_adagrad {
    float grad_scale, weight_decay, lr, eps, initial;
    int32_t first; // the sum may hold anything
} tr_cuda_adagrad;

// p, g, sum: [count]
typedef struct tr_cuda_adagrad_args {
    tr_cuda_adagrad k;
    float *p;
    tr_cuda_gradients g;
    float *sum;
    int64_t count;
} tr_cuda_adagrad_args;

#endif
