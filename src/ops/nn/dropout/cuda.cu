#include "backend/cuda/vector.cuh"
#include "ops/nn/dropout/cuda_element.cuh"

template <class T> static __device__ void add_dropout(const tr_cuda_dropout_args &a) {
    const T *r = (const T *)a.r, *x = (const T *)a.x;
    T *y = (T *)a.y;
    if (r) {
        tr_cuda_map(
            y, a.add, a.count,
            [&](int64_t i, float before, float value) {
                return before + value * tr_cuda_multiplier(a.dropout, i);
            },
            r, x);
    } else {
        tr_cuda_map(
            y, a.add, a.count,
            [&](int64_t i, float value) {
                return value * tr_cuda_multiplier(a.dropout, i);
            },
            x);
    }
}

extern "C" __global__ void tr_cuda_dropout_add(tr_cuda_dropout_args a) {
    TR_CUDA_BY_REAL(a.real, add_dropout, a);
}
TR_CUDA_KERNEL(tr_cuda_dropout_add);
