#ifndef TR_OPS_OPTIMIZERS_LARS_CUDA_H
#define TR_OPS_OPTIMIZERS_LARS_CUDA_H

#include "ops/flat/accumulate/cuda_gradients.h"
#include "ops/flat/update/cuda_part.h"
#include "ops/optimizers/lars/trust.h"

// tr_lars_numbers, rounded; rate: without the ratio of norms.
typedef struct tr_cuda_lars {
    float grad_scale, weight_decay, keep, from_b;
    double rate;
    int32_t ahead; // Nesterov's momentum
    int32_t first; // the buffer may hold anything
} tr_cuda_lars;

// p, g, buffer: [count]; buffer NULL: there is no momentum
typedef struct tr_cuda_lars_args {
    tr_cuda_lars k;
    float *p;
    tr_cuda_gradients g;
    float *buffer;
    int64_t count;
    const double *squares; // of the tensor and its gradient; NULL: the ratio is 1
    tr_lars_ratio ratio;
    tr_cuda_parts parts; // of the gradient
} tr_cuda_lars_args;

#endif
