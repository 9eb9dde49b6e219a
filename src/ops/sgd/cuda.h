#ifndef TR_OPS_SGD_CUDA_H
#define TR_OPS_SGD_CUDA_H

#include "backend/cuda/launchers.h"

// tr_sgd_numbers, rounded.
typedef struct tr_cuda_sgd {
    float grad_scale, weight_decay, lr, keep, take, from_g, from_b;
    bool first; // the buffer may hold anything
} tr_cuda_sgd;

// p, g, buffer: [count]; buffer NULL: there is no momentum
TR_CUDA_LAUNCHER void tr_cuda_sgd_update(tr_cuda_sgd k, float *p, const float *g,
                                         float *buffer, int64_t count, void *stream);

#endif
