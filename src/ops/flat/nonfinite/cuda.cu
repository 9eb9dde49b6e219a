#include "ops/flat/nonfinite/cuda.h"

#include "backend/cuda/real.cuh"

#define LARGEST 3.402823466e38f // finite f32

// All threads that find one write the same.
template <class T> static __device__ void find(const tr_cuda_nonfinite_args &a) {
    const T *x = (const T *)a.x;
    TR_CUDA_LOOP(i, a.count) {
        bool finite = fabsf(tr_cuda_get(x[i])) <= LARGEST;
        if (!finite && (*a.first == 0 || a.place < *a.first)) {
            *a.first = a.place;
        }
    }
}

extern "C" __global__ void tr_cuda_nonfinite(tr_cuda_nonfinite_args a) {
    TR_CUDA_BY_REAL(a.real, find, a);
}
TR_CUDA_KERNEL(tr_cuda_nonfinite);
