#ifndef TR_OPS_NN_RELU_CUDA_H
#define TR_OPS_NN_RELU_CUDA_H

#include <stdint.h>

// y = max(x, 0). x, y: [count]
typedef struct tr_cuda_relu_args {
    const void *x;
    void *y;
    int64_t count;
    int32_t real; // tr_dtype of all of them
    int32_t add;  // to y
} tr_cuda_relu_args;

// dx = dy where y > 0. dy, y, dx: [count]
typedef struct tr_cuda_relu_backward_args {
    const void *dy, *y;
    void *dx;
    int64_t count;
    int32_t real; // tr_dtype of all of them
    int32_t add;  // to dx
} tr_cuda_relu_backward_args;

#endif
