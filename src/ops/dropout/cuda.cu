#include "ops/dropout/cuda_element.cuh"

extern "C" __global__ void tr_cuda_dropout_add(tr_cuda_dropout_args a) {
    TR_CUDA_LOOP(i, a.count) {
        float value = a.x[i] * tr_cuda_multiplier(a.dropout, i);
        tr_cuda_put(&a.y[i], a.r ? a.r[i] + value : value, a.add);
    }
}
TR_CUDA_KERNEL(tr_cuda_dropout_add);
