#ifndef TR_OPS_FLAT_GRADIENT_SQUARES_CUDA_H
#define TR_OPS_FLAT_GRADIENT_SQUARES_CUDA_H

#include "ops/flat/accumulate/cuda_gradients.h"

// squares[b] = the sum of squares of run b of `block` elements of x [count]. `block` is
// a multiple of four. A block of TR_CUDA_THREADS has a run.
typedef struct tr_cuda_squares_args {
    tr_cuda_gradients x;
    int64_t count, block;
    double *squares;
} tr_cuda_squares_args;

// *sum += the sum of squares [runs].
typedef struct tr_cuda_squares_join_args {
    const double *squares;
    int64_t runs;
    double *sum;
} tr_cuda_squares_join_args;

#endif
