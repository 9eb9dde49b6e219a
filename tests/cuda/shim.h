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
// Runs the grid: body(closure) for each thread. `meets`: as fibers.
void run(dim3 blocks, dim3 threads, bool meets, void (*body)(void *), void *closure);
void meet_block();
// What lane `from` of the warp gives; all lanes of the warp call it.
uint64_t exchange(uint64_t mine, int from);
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

#define threadIdx (shim::thread)
#define blockIdx  (shim::block)
#define blockDim  (shim::threads)
#define gridDim   (shim::blocks)

static inline void __syncthreads() {
    shim::meet_block();
}

template <class T> static inline T __shfl_xor_sync(unsigned mask, T value, int k) {
    static_assert(sizeof(T) <= sizeof(uint64_t), "a lane gives 8 bytes");
    (void)mask;
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    bits = shim::exchange(bits, shim::lane() ^ k);
    memcpy(&value, &bits, sizeof value);
    return value;
}

#endif
