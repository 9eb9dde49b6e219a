// What kernels are written with: CUDA's own, or, where nvcc does not compile them, the
// tests' stand-in, which runs them on the host.
#ifndef TR_BACKEND_CUDA_DEVICE_H
#define TR_BACKEND_CUDA_DEVICE_H

#include <stdint.h>

#ifdef __CUDACC__
#include <cuda_runtime.h>

// Launches blocks of so many threads (dim3). TR_CUDA_BLOCKS is for kernels whose
// threads meet: at barriers, or to exchange values.
#define TR_CUDA_GRID(kernel, blocks, threads, stream, ...)                             \
    kernel<<<blocks, threads, 0, (cudaStream_t)(stream)>>>(__VA_ARGS__)
#define TR_CUDA_BLOCKS TR_CUDA_GRID
#elif !defined(TR_CUDA_GRID)
#error "nvcc, or a stand-in for CUDA that is included first, compiles this"
#endif

// A kernel that goes through `count` elements by TR_CUDA_LOOP.
#define TR_CUDA_EACH(kernel, count, stream, ...)                                       \
    TR_CUDA_GRID(kernel, dim3(tr_cuda_blocks(count)), dim3(256), stream, __VA_ARGS__)
#define TR_CUDA_LOOP(i, count)                                                         \
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < (count);      \
         i += (int64_t)gridDim.x * blockDim.x)

static inline unsigned tr_cuda_blocks(int64_t count) {
    int64_t blocks = (count + 255) / 256;
    return (unsigned)(blocks < 1 ? 1 : blocks > 4096 ? 4096 : blocks);
}

#define TR_CUDA_WARP 0xffffffffu // all lanes

// The sum over a warp, in every lane.
static __device__ inline float tr_cuda_warp_sum(float x) {
    for (int k = 16; k > 0; k /= 2) {
        x += __shfl_xor_sync(TR_CUDA_WARP, x, k);
    }
    return x;
}

static __device__ inline void tr_cuda_put(float *to, float value, bool add) {
    *to = add ? *to + value : value;
}

#endif
