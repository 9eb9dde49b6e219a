#ifndef TR_OPS_FLAT_GRADIENT_SQUARES_CUDA_H
#define TR_OPS_FLAT_GRADIENT_SQUARES_CUDA_H

#include "ops/flat/accumulate/cuda_gradients.h"

// squares[b] = the sum of squares of run b of `block` elements of x [count]. A block of
// TR_CUDA_THREADS has a run.
typedef struct tr_cuda_squares_args {
    tr_cuda_gradients x;
    int64_t count, block;
    double *squares;
    int32_t add; // to squares
} tr_cuda_squares_args;

#endif
