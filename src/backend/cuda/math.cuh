// Functions of elements of a type T. Where T has 16 bits they are made of single
// instructions, whose errors are far below what rounding to T leaves; in f32 they are
// the library's. A GPU has 16 of these instructions a clock in each multiprocessor, and
// an element of 16 bits in the time of a few: a library's exponential and a division
// would take longer than memory does.
#ifndef TR_BACKEND_CUDA_MATH_H
#define TR_BACKEND_CUDA_MATH_H

#include "backend/cuda/real.cuh"

#define TR_CUDA_LOG2_E 1.44269504088896340736f

// 1 / x by one instruction, within 1 unit in the last place; 0 where it is below
// 2^-126.
static __device__ inline float tr_cuda_reciprocal(float x) {
#ifdef __CUDACC__
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return 1 / x;
#endif
}

// e^x. In 16 bits: the error of x log2 e in f32 and 2 units in the last place, which
// are 1e-5 of the result where x is 88.
template <class T> static __device__ inline float tr_cuda_exp(float x) {
    if constexpr (sizeof(T) == 2) {
        return tr_cuda_exp2(TR_CUDA_LOG2_E * x);
    } else {
        return expf(x);
    }
}

template <class T> static __device__ inline float tr_cuda_inverse(float x) {
    if constexpr (sizeof(T) == 2) {
        return tr_cuda_reciprocal(x);
    } else {
        return 1 / x;
    }
}

// 1 / (1 + e^-x)
template <class T> static __device__ inline float tr_cuda_logistic(float x) {
    return tr_cuda_inverse<T>(1 + tr_cuda_exp<T>(-x));
}

#endif
