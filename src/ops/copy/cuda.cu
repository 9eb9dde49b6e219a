#include "ops/copy/cuda.h"

#include "backend/cuda/real.cuh"

template <class T> static __device__ void copy(const tr_cuda_copy_args &a) {
    const T *x = (const T *)a.x;
    T *y = (T *)a.y;
    TR_CUDA_LOOP(i, a.count) {
        tr_cuda_give(&y[i], tr_cuda_get(x[i]), a.add);
    }
}

extern "C" __global__ void tr_cuda_copy(tr_cuda_copy_args a) {
    TR_CUDA_BY_REAL(a.real, copy, a);
}
TR_CUDA_KERNEL(tr_cuda_copy);
