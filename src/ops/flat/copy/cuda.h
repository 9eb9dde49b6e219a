#ifndef TR_OPS_FLAT_COPY_CUDA_H
#define TR_OPS_FLAT_COPY_CUDA_H

#include <stdint.h>

// y = x, or y += x. x, y: [count]
typedef struct tr_cuda_copy_args {
    const void *x;
    void *y;
    int64_t count;
    int32_t real; // tr_dtype of both
    int32_t add;
} tr_cuda_copy_args;

#endif
