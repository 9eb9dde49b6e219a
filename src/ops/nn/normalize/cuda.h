#ifndef TR_OPS_NN_NORMALIZE_CUDA_H
#define TR_OPS_NN_NORMALIZE_CUDA_H

#include <stdint.h>

// dy: NULL: to is y, of x; else dx. All [rows, width] f32; a block has a row.
typedef struct tr_cuda_normalize_args {
    const float *dy, *x;
    float *to;
    int64_t width;
    int32_t add, unused;
} tr_cuda_normalize_args;

#endif
