#ifndef TR_OPS_OPTIMIZERS_LAMB_CUDA_H
#define TR_OPS_OPTIMIZERS_LAMB_CUDA_H

#include "ops/flat/accumulate/cuda_gradients.h"
#include "ops/flat/update/cuda_part.h"

// tr_lamb_numbers, rounded; step: without the ratio of norms.
typedef struct tr_cuda_lamb {
    float grad_scale, m_rate, beta2, v_rate, m_scale, v_scale, eps, decay;
    double step;
} tr_cuda_lamb;

// p, g, m, v: [count]
typedef struct tr_cuda_lamb_args {
    tr_cuda_lamb k;
    float *p;
    tr_cuda_gradients g;
    float *m, *v;
    int64_t count;
    const double *squares; // of the tensor and its direction; NULL: the ratio is 1
    double least, most;    // ratio
    tr_cuda_parts parts;   // of the direction
} tr_cuda_lamb_args;

#endif
