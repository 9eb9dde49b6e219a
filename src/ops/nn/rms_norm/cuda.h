#ifndef TR_OPS_NN_RMS_NORM_CUDA_H
#define TR_OPS_NN_RMS_NORM_CUDA_H

#include <stdint.h>

enum { TR_CUDA_RMS_UNITS = 4 }; // of a block

// As tr_rms_norm_sizes has them. A row is made of units: its heads, then what passes,
// cut into pieces of `depth`.
typedef struct tr_cuda_rms_norm_sizes {
    int64_t rows, width, depth, heads, queries, weights, units;
    int32_t real; // tr_dtype of all but rstd and dweight
    float epsilon;
} tr_cuda_rms_norm_sizes;

// What is NULL is not wanted.
typedef struct tr_cuda_rms_norm_args {
    tr_cuda_rms_norm_sizes s;
    const void *x, *weight; // [rows, width], [weights]
    void *y;                // [rows, width]
    float *rstd;            // [rows, heads]
    int32_t add_y, add_rstd;
} tr_cuda_rms_norm_args;

typedef struct tr_cuda_rms_norm_backward_args {
    tr_cuda_rms_norm_sizes s;
    const void *dy, *x, *weight; // [rows, width], likewise, [weights]
    const float *rstd;           // [rows, heads]
    void *dx;                    // [rows, width]
    float *parts;                // [gridDim.y, weights] sums of dweight's terms
    int64_t part;                // rows that one of them has
    int32_t add_dx;
} tr_cuda_rms_norm_backward_args;

#endif
