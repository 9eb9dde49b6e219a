#ifndef TR_OPS_GELU_CUDA_H
#define TR_OPS_GELU_CUDA_H

#include "backend/cuda/launchers.h"

// x, y, dy, dx: [count]. `exact`: by erf, else by tanh.
TR_CUDA_LAUNCHER void tr_cuda_gelu(const float *x, float *y, int64_t count, bool exact,
                                   bool add, void *stream);
TR_CUDA_LAUNCHER void tr_cuda_gelu_backward(const float *dy, const float *x, float *dx,
                                            int64_t count, bool exact, bool add,
                                            void *stream);

#endif
