#include "ops/nn/dequantize/cuda.h"

#include "backend/cuda/real.cuh"
#include "base/half.h"
#include "base/quantized.h"

static __device__ float scale_of(const tr_cuda_dequantize_args &a, int64_t block) {
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

static __device__ float value_of(const tr_cuda_dequantize_args &a, int64_t i) {
    if (a.kind == TR_QUANTIZED_Q8_0) {
        return (float)(signed char)a.tensor[i] * scale_of(a, i / TR_Q8_0_BLOCK);
    }
    return a.values[tr__nf4_code(a.tensor, i)] * scale_of(a, i / TR_NF4_BLOCK);
}

template <class T> static __device__ void dequantize(const tr_cuda_dequantize_args &a) {
    T *out = (T *)a.out;
    TR_CUDA_LOOP(i, a.count) {
        tr_cuda_give(&out[i], value_of(a, i), a.add);
    }
}

extern "C" __global__ void tr_cuda_dequantize(tr_cuda_dequantize_args a) {
    TR_CUDA_BY_REAL(a.real, dequantize, a);
}
TR_CUDA_KERNEL(tr_cuda_dequantize);
