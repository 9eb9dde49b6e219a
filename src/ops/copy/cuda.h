#ifndef TR_OPS_COPY_CUDA_H
#define TR_OPS_COPY_CUDA_H

#include <stdint.h>

// y = x, or y += x. x, y: [count]
typedef struct tr_cuda_copy_args {
    const float *x;
    float *y;
    int64_t count;
    int32_t add;
} tr_cuda_copy_args;

#endif
