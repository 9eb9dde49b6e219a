#include "backend/cuda/real.cuh"
#include "ops/dropout/cuda_element.cuh"

template <class T> static __device__ void add_dropout(const tr_cuda_dropout_args &a) {
    const T *r = (const T *)a.r, *x = (const T *)a.x;
    T *y = (T *)a.y;
    TR_CUDA_LOOP(i, a.count) {
        float value = tr_cuda_get(x[i]) * tr_cuda_multiplier(a.dropout, i);
        tr_cuda_give(&y[i], r ? tr_cuda_get(r[i]) + value : value, a.add);
    }
}

extern "C" __global__ void tr_cuda_dropout_add(tr_cuda_dropout_args a) {
    TR_CUDA_BY_REAL(a.real, add_dropout, a);
}
TR_CUDA_KERNEL(tr_cuda_dropout_add);
