// Adam with states in few bits: a block of threads takes one block of them after the
// other.
#include "ops/optimizers/adam/cuda.h"

#include "ops/flat/accumulate/cuda_gradient.cuh"
#include "ops/flat/packed_state/cuda.cuh"
#include "ops/optimizers/adam/cuda_step.cuh"

extern "C" __global__ void tr_cuda_adam_packed(tr_cuda_adam_packed_args a) {
    __shared__ tr_cuda_shared_maps maps;
    tr_cuda_share_maps(a.maps, &maps);
    for (int64_t block = blockIdx.x; block * TR_STATE_BLOCK < a.count;
         block += gridDim.x) {
        int64_t i = block * TR_STATE_BLOCK + threadIdx.x;
        bool there = i < a.count;
        float m = tr_cuda_unpack_state(a.m, maps, block, there);
        float v = tr_cuda_unpack_state(a.v, maps, block, there);
        if (there) {
            a.p[i] = tr_cuda_adam_step(a.k, tr_cuda_gradient(a.g, i), a.p[i], &m, &v);
        }
        tr_cuda_pack_state(a.m, maps, block, there, m);
        tr_cuda_pack_state(a.v, maps, block, there, v);
    }
}
TR_CUDA_KERNEL_MEETS(tr_cuda_adam_packed);
