#include "ops/nn/largest/cuda.h"

#include "backend/cuda/vector.cuh"

// One thread for all: with numbers that are no constants the arguments would lie in
// local memory.
extern "C" __global__ void tr_cuda_gather_largest(tr_cuda_gather_largest_args a) {
    TR_CUDA_UNROLL
    for (int i = 0; i < TR_OP_IN_MAX; i++) {
        if (threadIdx.x == 0 && i < a.count) {
            a.to[i] = *a.in[i];
        }
    }
}
TR_CUDA_KERNEL(tr_cuda_gather_largest);
