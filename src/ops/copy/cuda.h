#ifndef TR_OPS_COPY_CUDA_H
#define TR_OPS_COPY_CUDA_H

#include "backend/cuda/launchers.h"

// x, y: [count]
TR_CUDA_LAUNCHER void tr_cuda_copy(const float *x, float *y, int64_t count, bool add,
                                   void *stream);

#endif
