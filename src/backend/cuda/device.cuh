// What kernels are written with. nvcc compiles them for the GPU. The tests compile them
// with the host's compiler, for a stand-in of CUDA that is included first.
//
// A kernel is `extern "C" __global__ void tr_cuda_<name>(<structure> args)`: one
// structure of plain C, which cuda.h defines, is its only parameter. After it stands
// TR_CUDA_KERNEL(tr_cuda_<name>), or TR_CUDA_KERNEL_MEETS where threads of a block
// meet: at barriers, or to exchange values. The build reads these lines, too; each is a
// line of its own.
#ifndef TR_BACKEND_CUDA_DEVICE_H
#define TR_BACKEND_CUDA_DEVICE_H

#include "backend/cuda/grid.h"

#ifdef __CUDACC__
#define TR_CUDA_KERNEL(name)       static_assert(true, "")
#define TR_CUDA_KERNEL_MEETS(name) static_assert(true, "")
#elif !defined(TR_CUDA_KERNEL)
#error "nvcc, or a stand-in for CUDA that is included first, compiles this"
#endif

// All threads of the grid together go through `count` elements.
#define TR_CUDA_LOOP(i, count)                                                         \
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < (count);      \
         i += (int64_t)gridDim.x * blockDim.x)

#define TR_CUDA_WARP 0xffffffffu // all lanes

// Before a loop that nvcc has to unroll, so that its arrays are in registers.
#ifdef __CUDACC__
#define TR_CUDA_UNROLL    _Pragma("unroll")
#define TR_CUDA_NO_UNROLL _Pragma("unroll 1")
#else
#define TR_CUDA_UNROLL
#define TR_CUDA_NO_UNROLL
#endif

// For large functions that are given a kernel's structure: where they were called, a
// copy of it would be in local memory.
#ifdef __CUDACC__
#define TR_CUDA_INLINE static __device__ __forceinline__
#else
#define TR_CUDA_INLINE static inline
#endif

// threadIdx.x, read again: what follows from it then has no registers elsewhere.
static __device__ inline int tr_cuda_thread() {
    int thread;
#ifdef __CUDACC__
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
#else
    thread = (int)threadIdx.x;
#endif
    return thread;
}

// The sum over a warp, in every lane.
template <class T> static __device__ inline T tr_cuda_warp_sum(T x) {
    for (int k = 16; k > 0; k /= 2) {
        x += __shfl_xor_sync(TR_CUDA_WARP, x, k);
    }
    return x;
}

// 2^x by one instruction: exp2f takes four more, for results below 2^-126, which are 0
// here.
static __device__ inline float tr_cuda_exp2(float x) {
#ifdef __CUDACC__
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return exp2f(x);
#endif
}

// a * b, rounded before a sum takes it.
static __device__ inline float tr_cuda_product(float a, float b) {
#ifdef __CUDACC__
    return __fmul_rn(a, b);
#else
    volatile float product = a * b;
    return product;
#endif
}

static __device__ inline void tr_cuda_put(float *to, float value, bool add) {
    *to = add ? *to + value : value;
}

#endif
