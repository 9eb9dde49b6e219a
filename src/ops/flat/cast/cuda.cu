#include "ops/flat/cast/cuda.h"

#include "backend/cuda/vector.cuh"

template <class F, class T> static __device__ void cast(const tr_cuda_cast_args &a) {
    tr_cuda_map((T *)a.y, a.add, a.count, [](int64_t, float x) { return x; },
                (const F *)a.x);
}

template <class F> static __device__ void cast_from(const tr_cuda_cast_args &a) {
    if (a.to == TR_F32) {
        cast<F, float>(a);
    } else if (a.to == TR_BF16) {
        cast<F, tr_cuda_bf16>(a);
    } else {
        cast<F, tr_cuda_f16>(a);
    }
}

extern "C" __global__ void tr_cuda_cast(tr_cuda_cast_args a) {
    TR_CUDA_BY_REAL(a.from, cast_from, a);
}
TR_CUDA_KERNEL(tr_cuda_cast);
