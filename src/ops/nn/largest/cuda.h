#ifndef TR_OPS_NN_LARGEST_CUDA_H
#define TR_OPS_NN_LARGEST_CUDA_H

#include <tranche/extend/op.h>

#include <stdint.h>

// to[i] = *in[i], [count]
typedef struct tr_cuda_gather_largest_args {
    const float *in[TR_OP_IN_MAX];
    float *to;
    int32_t count;
    int32_t unused;
} tr_cuda_gather_largest_args;

#endif
