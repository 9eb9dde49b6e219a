#include "ops/copy/cuda.h"

#include "backend/cuda/device.cuh"

extern "C" __global__ void tr_cuda_copy(tr_cuda_copy_args a) {
    TR_CUDA_LOOP(i, a.count) {
        tr_cuda_put(&a.y[i], a.x[i], a.add);
    }
}
TR_CUDA_KERNEL(tr_cuda_copy);
