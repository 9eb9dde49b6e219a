#ifndef TR_OPS_NN_POINTWISE_CUDA_H
#define TR_OPS_NN_POINTWISE_CUDA_H

#include <stdint.h>

// y = f(x), or with dy y = dy f'(x). x, dy, y: [count]
typedef struct tr_cuda_pointwise_args {
    const void *x, *dy;
    void *y;
    int64_t count;
    int32_t kind; // tr_pointwise_kind
    float a, b;
    int32_t real; // tr_dtype of all of them
    int32_t add;  // to y
} tr_cuda_pointwise_args;

#endif
