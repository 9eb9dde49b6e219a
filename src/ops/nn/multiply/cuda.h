#ifndef TR_OPS_NN_MULTIPLY_CUDA_H
#define TR_OPS_NN_MULTIPLY_CUDA_H

#include <stdint.h>

// y = a b. a, b, y: [count]
typedef struct tr_cuda_multiply_args {
    const void *a, *b;
    void *y;
    int64_t count;
    int32_t real; // tr_dtype of all of them
    int32_t add;  // to y
} tr_cuda_multiply_args;

#endif
