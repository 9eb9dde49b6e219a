// Elements of tensors of few bits, for kernels.
#ifndef TR_OPS_NN_DEQUANTIZE_CUDA_VALUE_CUH
#define TR_OPS_NN_DEQUANTIZE_CUDA_VALUE_CUH

#include "backend/cuda/real.cuh"
#include "base/half.h"
#include "base/quantized.h"
#include "ops/nn/dequantize/cuda.h"

static __device__ inline float tr_cuda_few_bits_scale(const tr_cuda_few_bits &a,
                                                      int64_t block) {
    const float *nested = (const float *)(a.tensor + a.nested);
    if (a.kind == TR_QUANTIZED_Q8_0) {
        return tr__f16_to_f32(((const uint16_t *)(a.tensor + a.scales))[block]);
    }
    if (a.kind == TR_QUANTIZED_NF4) {
        return ((const float *)(a.tensor + a.scales))[block];
    }
    int64_t groups = (a.blocks + TR_NF4_NESTED - 1) / TR_NF4_NESTED;
    return a.map[a.tensor[a.scales + block]] * nested[block / TR_NF4_NESTED] +
           nested[groups];
}

static __device__ inline float tr_cuda_few_bits_value(const tr_cuda_few_bits &a,
                                                      int64_t i) {
    if (a.kind == TR_QUANTIZED_Q8_0) {
        return (float)(signed char)a.tensor[i] *
               tr_cuda_few_bits_scale(a, i / TR_Q8_0_BLOCK);
    }
    return a.values[tr__nf4_code(a.tensor, i)] *
           tr_cuda_few_bits_scale(a, i / TR_NF4_BLOCK);
}

#endif
