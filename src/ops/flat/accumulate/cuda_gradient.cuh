// One sum of gradients as f32.
#ifndef TR_OPS_ACCUMULATE_CUDA_GRADIENT_H
#define TR_OPS_ACCUMULATE_CUDA_GRADIENT_H

#include "ops/flat/accumulate/cuda_gradients.h"
#include "ops/flat/accumulate/fixed.h"

#include "backend/cuda/real.cuh"

// Element i. All threads take the same way.
static __device__ inline float tr_cuda_gradient(const tr_cuda_gradients &g, int64_t i) {
    switch (g.type) {
    case TR_F32:
        return ((const float *)g.first)[i];
    case TR_BF16:
        return tr_cuda_get(((const tr_cuda_bf16 *)g.first)[i]);
    case TR_F16:
        return tr_cuda_get(((const tr_cuda_f16 *)g.first)[i]);
    default:
        return (float)(tr__fixed_to_odd(((const int64_t *)g.first)[i]) * g.back);
    }
}

#endif
