#ifndef TR_OPS_NN_ELEMENT_LOSS_CUDA_H
#define TR_OPS_NN_ELEMENT_LOSS_CUDA_H

#include "ops/nn/linear_cross_entropy/cuda.h"

// x [count] against targets [count]; dx [count], or NULL; what each block has found.
typedef struct tr_cuda_element_loss_args {
    const void *x;
    const float *targets;
    void *dx;
    tr_cuda_row_sums *each; // [blocks]
    int64_t count;
    float seed;
    int32_t kind; // tr_element_loss_kind
    int32_t real, add;
} tr_cuda_element_loss_args;

#endif
