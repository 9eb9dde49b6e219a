#include "ops/nn/transpose/cuda.h"

#include "backend/cuda/real.cuh"

template <class T> static __device__ void transpose(const tr_cuda_transpose_args &a) {
    const T *x = (const T *)a.x;
    T *y = (T *)a.y;
    TR_CUDA_LOOP(to, a.matrices * a.rows * a.columns * a.inner) {
        int64_t i = to % a.inner, row = to / a.inner % a.rows;
        int64_t column = to / a.inner / a.rows % a.columns;
        int64_t outer = to / a.inner / a.rows / a.columns;
        int64_t from = ((outer * a.rows + row) * a.columns + column) * a.inner + i;
        tr_cuda_give(&y[to], tr_cuda_get(x[from]), a.add);
    }
}

extern "C" __global__ void tr_cuda_transpose(tr_cuda_transpose_args a) {
    TR_CUDA_BY_REAL(a.real, transpose, a);
}
TR_CUDA_KERNEL(tr_cuda_transpose);
