#ifndef TR_OPS_NN_TANH_CUDA_H
#define TR_OPS_NN_TANH_CUDA_H

#include <stdint.h>

// y = tanh(x). x, y: [count]
typedef struct tr_cuda_tanh_args {
    const void *x;
    void *y;
    int64_t count;
    int32_t real; // tr_dtype of all of them
    int32_t add;  // to y
} tr_cuda_tanh_args;

// dx = dy (1 - y^2). dy, y, dx: [count]
typedef struct tr_cuda_tanh_backward_args {
    const void *dy, *y;
    void *dx;
    int64_t count;
    int32_t real; // tr_dtype of all of them
    int32_t add;  // to dx
} tr_cuda_tanh_backward_args;

#endif
