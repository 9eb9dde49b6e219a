#ifndef TR_OPS_LINEAR_CUDA_H
#define TR_OPS_LINEAR_CUDA_H

#include <stdint.h>

// y += bias (NULL: nothing), then max(y, 0) if asked. y: [count / width, width]
typedef struct tr_cuda_bias_args {
    float *y;
    const float *bias;
    int64_t count, width;
    int32_t relu;
} tr_cuda_bias_args;

// sums: [width], the sum of the rows of x [rows, width]
typedef struct tr_cuda_column_sums_args {
    const float *x;
    int64_t rows, width;
    float *sums;
    int32_t add; // to sums
} tr_cuda_column_sums_args;

#endif
