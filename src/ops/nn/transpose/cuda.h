#ifndef TR_OPS_NN_TRANSPOSE_CUDA_H
#define TR_OPS_NN_TRANSPOSE_CUDA_H

#include <stdint.h>

// x: [matrices, rows, columns, inner]; y: rows and columns exchanged.
typedef struct tr_cuda_transpose_args {
    const void *x;
    void *y;
    int64_t matrices, rows, columns, inner;
    int32_t real; // tr_dtype of both
    int32_t add;  // to y
} tr_cuda_transpose_args;

#endif
