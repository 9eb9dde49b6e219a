#ifndef TR_OPS_FLAT_ACCUMULATE_CUDA_H
#define TR_OPS_FLAT_ACCUMULATE_CUDA_H

#include <stdint.h>

// Terms in fixed point. sums: [count], = or += x [count] * scale.
typedef struct tr_cuda_fixed_args {
    const float *x;
    int64_t *sums;
    int64_t count;
    double scale, limit;
    double *counts; // [2], of terms that are too large, not finite; NULL: nobody asks
    int32_t add;
} tr_cuda_fixed_args;

// Sums to sums. sums: [count], = or += x [count]
typedef struct tr_cuda_fixed_sums_args {
    const uint64_t *x;
    uint64_t *sums;
    int64_t count;
    int32_t add;
} tr_cuda_fixed_sums_args;

#endif
