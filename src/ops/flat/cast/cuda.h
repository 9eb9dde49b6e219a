#ifndef TR_OPS_FLAT_CAST_CUDA_H
#define TR_OPS_FLAT_CAST_CUDA_H

#include <stdint.h>

// y = x, or +=, rounded once. x, y: [count]
typedef struct tr_cuda_cast_args {
    const void *x;
    void *y;
    int64_t count;
    int32_t from, to; // tr_dtype: f32, bf16 or f16
    int32_t add;
} tr_cuda_cast_args;

#endif
