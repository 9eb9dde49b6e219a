#ifndef TR_OPS_OPTIMIZERS_LION_CUDA_H
#define TR_OPS_OPTIMIZERS_LION_CUDA_H

#include "ops/flat/accumulate/cuda_gradients.h"

// tr_lion_numbers, rounded.
typedef struct tr_cuda_lion {
    float grad_scale, keep, beta1, g_share, beta2, m_rate, lr;
} tr_cuda_lion;

// p, g, m: [count]
typedef struct tr_cuda_lion_args {
    tr_cuda_lion k;
    float *p;
    tr_cuda_gradients g;
    float *m;
    int64_t count;
} tr_cuda_lion_args;

#endif
