// Elements of the types that activations and weights have: f32, bf16 and f16.
// Arithmetic is in f32; what is stored is rounded to nearest, ties to even, as on the
// CPU, but for the bits of a NaN.
#ifndef TR_BACKEND_CUDA_REAL_H
#define TR_BACKEND_CUDA_REAL_H

#include "backend/cuda/device.cuh"
#include "base/half.h"

struct tr_cuda_bf16 {
    uint16_t bits;
};

struct tr_cuda_f16 {
    uint16_t bits;
};

static __device__ inline float tr_cuda_get(float x) {
    return x;
}

static __device__ inline float tr_cuda_get(tr_cuda_bf16 x) {
    return tr__bf16_to_f32(x.bits);
}

static __device__ inline float tr_cuda_get(tr_cuda_f16 x) {
#ifdef __CUDACC__
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x.bits));
    return wide;
#else
    return tr__f16_to_f32(x.bits);
#endif
}

static __device__ inline void tr_cuda_set(float *to, float value) {
    *to = value;
}

static __device__ inline void tr_cuda_set(tr_cuda_bf16 *to, float value) {
#ifdef __CUDACC__
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(to->bits) : "f"(value));
#else
    to->bits = tr__bf16_of_f32(value);
#endif
}

static __device__ inline void tr_cuda_set(tr_cuda_f16 *to, float value) {
#ifdef __CUDACC__
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(to->bits) : "f"(value));
#else
    to->bits = tr__f16_of_f32(value);
#endif
}

// Two at once.
#ifdef __CUDACC__ // else the stand-in for CUDA has these functions

static __device__ inline uint32_t tr_cuda_pack_bf16(float low, float high) {
    uint32_t both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

static __device__ inline uint32_t tr_cuda_pack_f16(float low, float high) {
    uint32_t both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

#endif

static __device__ inline uint32_t tr_cuda_pack(float low, float high, tr_cuda_bf16) {
    return tr_cuda_pack_bf16(low, high);
}

static __device__ inline uint32_t tr_cuda_pack(float low, float high, tr_cuda_f16) {
    return tr_cuda_pack_f16(low, high);
}

// The value that a T keeps of it.
template <class T> static __device__ inline float tr_cuda_round(float value) {
    T kept;
    tr_cuda_set(&kept, value);
    return tr_cuda_get(kept);
}

// *to = value, or +=.
template <class T>
static __device__ inline void tr_cuda_give(T *to, float value, bool add) {
    tr_cuda_set(to, add ? tr_cuda_get(*to) + value : value);
}

// Calls function<T>(...) for the type T whose tr_dtype is `real`.
#define TR_CUDA_BY_REAL(real, function, ...)                                           \
    do {                                                                               \
        if ((real) == TR_F32) {                                                        \
            function<float>(__VA_ARGS__);                                              \
        } else if ((real) == TR_BF16) {                                                \
            function<tr_cuda_bf16>(__VA_ARGS__);                                       \
        } else {                                                                       \
            function<tr_cuda_f16>(__VA_ARGS__);                                        \
        }                                                                              \
    } while (0)

#endif
