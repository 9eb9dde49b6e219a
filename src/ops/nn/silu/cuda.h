#ifndef TR_OPS_NN_SILU_CUDA_H
#define TR_OPS_NN_SILU_CUDA_H

#include <stdint.h>

// y = silu(x). x, y: [count]
typedef struct tr_cuda_silu_args {
    const void *x;
    void *y;
    int64_t count;
    int32_t real; // tr_dtype of all of them
    int32_t add;  // to y
} tr_cuda_silu_args;

// dx = dy silu'(x). dy, x, dx: [count]
typedef struct tr_cuda_silu_backward_args {
    const void *dy, *x;
    void *dx;
    int64_t count;
    int32_t real; // tr_dtype of all of them
    int32_t add;  // to dx
} tr_cuda_silu_backward_args;

#endif
