#ifndef TR_OPS_GRADIENT_SQUARES_CUDA_H
#define TR_OPS_GRADIENT_SQUARES_CUDA_H

#include "backend/cuda/launchers.h"

// squares: [ceil(count / block)], the sum of squares of each run of `block` elements of
// x [count]
TR_CUDA_LAUNCHER void tr_cuda_squares(const float *x, int64_t count, int64_t block,
                                      double *squares, void *stream);
// *sum += the squares of x [count]
TR_CUDA_LAUNCHER void tr_cuda_add_squares(const float *x, int64_t count, double *sum,
                                          void *stream);

#endif
