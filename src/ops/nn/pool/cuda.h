#ifndef TR_OPS_NN_POOL_CUDA_H
#define TR_OPS_NN_POOL_CUDA_H

#include "ops/nn/pool/windows.h"

typedef struct tr_cuda_pool_args {
    tr_pool_sizes s;
    const void *x, *dy; // as the images and the windows lie; x NULL: an average's
    void *y, *dx;
    int32_t real; // tr_dtype of all of them
    int32_t add;  // to y, to dx
} tr_cuda_pool_args;

#endif
