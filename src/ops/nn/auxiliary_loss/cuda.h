#ifndef TR_OPS_NN_AUXILIARY_LOSS_CUDA_H
#define TR_OPS_NN_AUXILIARY_LOSS_CUDA_H

#include "ops/nn/linear_cross_entropy/cuda.h"

// x [rows, classes] against targets [rows], each row times its weight; dx as x, or
// NULL. A block has a row.
typedef struct tr_cuda_auxiliary_loss_args {
    const void *x;
    const int32_t *targets;
    const float *weights; // [rows]
    void *dx;
    tr_cuda_row_sums *each; // [rows]
    int64_t classes;
    float seed;
    int32_t real, add, unused;
} tr_cuda_auxiliary_loss_args;

#endif
