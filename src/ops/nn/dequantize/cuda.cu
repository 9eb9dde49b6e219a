#include "ops/nn/dequantize/cuda_value.cuh"

template <class T> static __device__ void dequantize(const tr_cuda_dequantize_args &a) {
    T *out = (T *)a.out;
    TR_CUDA_LOOP(i, a.count) {
        tr_cuda_give(&out[i], tr_cuda_few_bits_value(a.bits, i), a.add);
    }
}

extern "C" __global__ void tr_cuda_dequantize(tr_cuda_dequantize_args a) {
    TR_CUDA_BY_REAL(a.real, dequantize, a);
}
TR_CUDA_KERNEL(tr_cuda_dequantize);
