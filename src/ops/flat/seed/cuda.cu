#include "ops/flat/seed/cuda.h"

#include "backend/cuda/vector.cuh"

template <class F, class T> static __device__ void seed(const tr_cuda_seed_args &a) {
    float by = a.seed;
    tr_cuda_map((T *)a.dy, a.add, a.count, [by](int64_t, float g) { return g * by; },
                (const F *)a.g);
}

template <class F> static __device__ void seed_from(const tr_cuda_seed_args &a) {
    if (a.to == TR_F32) {
        seed<F, float>(a);
    } else if (a.to == TR_BF16) {
        seed<F, tr_cuda_bf16>(a);
    } else {
        seed<F, tr_cuda_f16>(a);
    }
}

extern "C" __global__ void tr_cuda_seed(tr_cuda_seed_args a) {
    TR_CUDA_BY_REAL(a.from, seed_from, a);
}
TR_CUDA_KERNEL(tr_cuda_seed);
