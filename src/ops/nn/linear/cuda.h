#ifndef TR_OPS_NN_LINEAR_CUDA_H
#define TR_OPS_NN_LINEAR_CUDA_H

#include <stdint.h>

// y += bias (NULL: nothing), then max(y, 0) if asked. y: [count / width, width], whose
// rows are `pitch` elements apart
typedef struct tr_cuda_bias_args {
    void *y;
    const void *bias;
    int64_t count, width, pitch;
    int32_t real, y_real; // tr_dtype of bias; of y: that, or f32
    int32_t relu;
} tr_cuda_bias_args;

// sums: [ceil(rows / part), width], the sums of so many rows each of x [rows, width],
// which are `pitch` elements apart
typedef struct tr_cuda_column_sums_args {
    const void *x;
    int64_t rows, width, pitch, part;
    int32_t real; // tr_dtype of x
    float *sums;
    int32_t add; // to sums
} tr_cuda_column_sums_args;

#endif
