#ifndef TR_OPS_NN_CROSS_ENTROPY_CUDA_H
#define TR_OPS_NN_CROSS_ENTROPY_CUDA_H

#include "ops/nn/linear_cross_entropy/cuda.h"

// x [rows, classes] against targets [rows]; weight [classes] of x's type, or NULL; dx
// as x, or NULL. What rows come to goes to `each` or to `losses`. A row's gradient
// begins with its own of `seeds`, or, where that is NULL, with `seed`. A block has a
// row.
typedef struct tr_cuda_class_loss_args {
    const void *x;
    const int32_t *targets;
    const void *weight;
    void *dx;
    tr_cuda_row_sums *each; // [rows] or NULL
    float *losses;          // [rows] or NULL
    const float *seeds;     // [rows] or NULL
    int64_t classes;
    float seed, smoothing;
    int32_t real, add;
} tr_cuda_class_loss_args;

#endif
