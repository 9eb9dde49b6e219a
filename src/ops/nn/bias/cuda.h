#ifndef TR_OPS_NN_BIAS_CUDA_H
#define TR_OPS_NN_BIAS_CUDA_H

#include <stdint.h>

// y = x + b. x, y: [count], in rows of `width`; b: [width]
typedef struct tr_cuda_add_bias_args {
    const void *x, *b;
    void *y;
    int64_t count, width;
    int32_t real; // tr_dtype of all of them
    int32_t add;  // to y
} tr_cuda_add_bias_args;

#endif
