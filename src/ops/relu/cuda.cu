#include "ops/relu/cuda.h"

#include "backend/cuda/device.cuh"

extern "C" __global__ void tr_cuda_relu(tr_cuda_relu_args a) {
    TR_CUDA_LOOP(i, a.count) {
        tr_cuda_put(&a.y[i], a.x[i] < 0 ? 0 : a.x[i], a.add); // NaN stays
    }
}
TR_CUDA_KERNEL(tr_cuda_relu);

extern "C" __global__ void tr_cuda_relu_backward(tr_cuda_relu_backward_args a) {
    TR_CUDA_LOOP(i, a.count) {
        tr_cuda_put(&a.dx[i], a.y[i] > 0 ? a.dy[i] : 0, a.add);
    }
}
TR_CUDA_KERNEL(tr_cuda_relu_backward);
