// Kernels on the host: what backend/cuda/device.cuh stands on where nvcc does not
// compile it. Blocks run one after the other. The threads of a block run one after the
// other too, or, in kernels whose threads meet, as fibers that take turns; in
// descending order where TR_CUDA_DESCENDING is set, so that what is missing between
// them shows.
#ifndef TEST_CUDA_SHIM_H
#define TEST_CUDA_SHIM_H

#include <stdint.h>

#include <cmath>
#include <cstddef>
#include <cstring>

#define __global__
#define __device__
#define __host__
#define __shared__ static // of the block that runs
#define __launch_bounds__(...)

struct dim3 {
    unsigned x, y, z;
    explicit dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1)
        : x(x_), y(y_), z(z_) {
    }
};

namespace shim {
// Where the running thread is.
extern dim3 thread, block, threads, blocks;

// ---- fibers.cpp
struct shape {
    dim3 blocks, threads;
    size_t shared; // bytes of each block's shared memory, beside __shared__
};
// Runs the grid: body(closure) for each thread. `meets`: as fibers.
void run(const shape &grid, bool meets, void (*body)(void *), void *closure);
void meet_block();
bool any_of_block(bool mine); // a barrier, too
// Ends the program if a vector's address is no multiple of so many bytes: a GPU traps.
void must_align(const void *address, size_t bytes);
// What a lane gives to others of its warp.
struct gift {
    uint64_t words[6];
};
// Those of all lanes, of so many bytes each; all lanes of the warp call it.
const gift *gather(const void *mine, size_t bytes);
int lane();

// ---- driver.cpp
// A kernel, whose only parameter is a structure of so many bytes. All kernels are in
// one list.
struct kernel {
    const char *name;
    bool meets;
    size_t bytes;
    void (*body)(void *args); // what one thread does
    const kernel *next;
    kernel(const char *name, bool meets, size_t bytes, void (*body)(void *));
};

template <class A> constexpr size_t size_of(void (*)(A)) {
    return sizeof(A);
}
template <class A> void call(void (*kernel)(A), void *args) {
    kernel(*(const A *)args);
}
} // namespace shim

#define TR_CUDA_REGISTER(name, meets)                                                  \
    static shim::kernel kernel_##name(#name, meets, shim::size_of(name),               \
                                      [](void *args) { shim::call(name, args); })
#define TR_CUDA_KERNEL(name)       TR_CUDA_REGISTER(name, false)
#define TR_CUDA_KERNEL_MEETS(name) TR_CUDA_REGISTER(name, true)

// The sine and the cosine of x pi.
static inline void sincospi(double x, double *sine, double *cosine) {
    *sine = sin(M_PI * x);
    *cosine = cos(M_PI * x);
}

struct alignas(16) uint4 {
    uint32_t x, y, z, w;
};

#define threadIdx (shim::thread)
#define blockIdx  (shim::block)
#define blockDim  (shim::threads)
#define gridDim   (shim::blocks)

static inline void __syncthreads() {
    shim::meet_block();
}

static inline int __syncthreads_or(int mine) {
    return shim::any_of_block(mine != 0);
}

static inline int __popc(uint32_t bits) {
    return __builtin_popcount(bits);
}

// Four bytes of both words together, each by a digit of 4 bits.
static inline uint32_t __byte_perm(uint32_t low, uint32_t high, uint32_t digits) {
    uint64_t both = (uint64_t)high << 32 | low;
    uint32_t word = 0;
    for (int i = 0; i < 4; i++) {
        word |= (uint32_t)(both >> (digits >> 4 * i & 7) * 8 & 0xFF) << 8 * i;
    }
    return word;
}

static inline uint4 tr_cuda_load16(const void *from) {
    uint4 words;
    shim::must_align(from, sizeof words);
    memcpy(&words, from, sizeof words);
    return words;
}

static inline void tr_cuda_store16(void *to, uint4 words) {
    shim::must_align(to, sizeof words);
    memcpy(to, &words, sizeof words);
}

static inline uint32_t atomicMax(uint32_t *at, uint32_t value) {
    uint32_t before = *at;
    *at = value > before ? value : before;
    return before;
}

static inline unsigned long long atomicAdd(unsigned long long *at,
                                           unsigned long long value) {
    unsigned long long before = *at;
    *at = before + value;
    return before;
}

template <class T> static inline T __shfl_sync(unsigned mask, T value, int from) {
    (void)mask;
    const shim::gift *all = shim::gather(&value, sizeof value);
    memcpy(&value, &all[from % 32], sizeof value);
    return value;
}

template <class T> static inline T __shfl_xor_sync(unsigned mask, T value, int k) {
    return __shfl_sync(mask, value, shim::lane() ^ k);
}

static inline unsigned __ballot_sync(unsigned mask, bool mine) {
    unsigned bits = 0;
    (void)mask;
    const shim::gift *all = shim::gather(&mine, sizeof mine);
    for (unsigned k = 0; k < 32; k++) {
        memcpy(&mine, &all[k], sizeof mine);
        bits |= (unsigned)mine << k;
    }
    return bits;
}

#include "cuda/shim_mma.h"

#endif
