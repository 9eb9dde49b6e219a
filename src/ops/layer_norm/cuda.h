#ifndef TR_OPS_LAYER_NORM_CUDA_H
#define TR_OPS_LAYER_NORM_CUDA_H

#include "ops/dropout/cuda.h"

// A normalization, or a residual sum and its normalization. What is NULL is not wanted;
// bit i of `add` is that of result i of the op.
typedef struct tr_cuda_norm {
    int64_t rows, width;
    float epsilon;
    const float *r;             // [rows, width], or NULL: x alone is normalized
    const float *x;             // [rows, width]
    const float *weight, *bias; // [width]
    float *sum, *y;             // [rows, width]; sum: r + dropout(x)
    float *mean, *rstd;         // [rows]
    bool add_sum, add_y, add_mean, add_rstd;
    tr_cuda_dropout dropout; // of x, beside r
} tr_cuda_norm;

TR_CUDA_LAUNCHER void tr_cuda_layer_norm(tr_cuda_norm norm, void *stream);

typedef struct tr_cuda_norm_backward {
    int64_t rows, width;
    const float *dy, *x;      // [rows, width]
    const float *mean, *rstd; // [rows]
    const float *weight;      // [width]
    float *dx;                // [rows, width], or NULL
    float *dweight, *dbias;   // [width], or NULL
    bool add_dx, add_dweight, add_dbias;
} tr_cuda_norm_backward;

TR_CUDA_LAUNCHER void tr_cuda_layer_norm_backward(tr_cuda_norm_backward norm,
                                                  void *stream);

#endif
