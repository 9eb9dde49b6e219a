#ifndef TR_OPS_NN_BROADCAST_CUDA_H
#define TR_OPS_NN_BROADCAST_CUDA_H

#include <stdint.h>

// expand: x [outer, inner], y [outer, times, inner]; sum: the other way.
typedef struct tr_cuda_broadcast_args {
    const void *x;
    void *y;
    int64_t outer, times, inner;
    float scale;
    int32_t real; // tr_dtype of both
    int32_t add;  // to y
} tr_cuda_broadcast_args;

#endif
