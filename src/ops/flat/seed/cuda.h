#ifndef TR_OPS_FLAT_SEED_CUDA_H
#define TR_OPS_FLAT_SEED_CUDA_H

#include <stdint.h>

// dy = g * seed, or +=, rounded once. g, dy: [count]
typedef struct tr_cuda_seed_args {
    const void *g;
    void *dy;
    int64_t count;
    int32_t from, to; // tr_dtype: f32, bf16 or f16
    int32_t add;
    float seed;
} tr_cuda_seed_args;

#endif
