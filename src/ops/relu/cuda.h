#ifndef TR_OPS_RELU_CUDA_H
#define TR_OPS_RELU_CUDA_H

#include "backend/cuda/launchers.h"

// x, y, dy, dx: [count]
TR_CUDA_LAUNCHER void tr_cuda_relu(const float *x, float *y, int64_t count, bool add,
                                   void *stream);
TR_CUDA_LAUNCHER void tr_cuda_relu_backward(const float *dy, const float *y, float *dx,
                                            int64_t count, bool add, void *stream);

#endif
