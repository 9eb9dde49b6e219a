#include "ops/nn/auxiliary_loss/cuda.h"

#include "ops/nn/linear_cross_entropy/cuda_classes.cuh"

template <class T>
static __device__ void compare(const tr_cuda_auxiliary_loss_args &a) {
    int64_t row = blockIdx.x;
    const T *x = (const T *)a.x + row * a.classes;
    T *dx = a.dx ? (T *)a.dx + row * a.classes : nullptr;
    int32_t target = a.targets[row];
    double weight = a.weights[row], at = target >= 0 ? tr_cuda_get(x[target]) : 0;
    tr_cuda_row_softmax s = tr_cuda_classes_read(x, a.classes);
    for (int64_t c = threadIdx.x; dx && c < a.classes; c += TR_CUDA_THREADS) {
        double share = exp((double)tr_cuda_get(x[c]) - s.top) / s.sum;
        double slope = target >= 0 ? weight * (share - (c == target)) : 0;
        double before = a.add ? tr_cuda_get(dx[c]) : 0;
        tr_cuda_set(&dx[c], (float)(before + a.seed * slope));
    }
    if (threadIdx.x == 0) {
        double loss = target >= 0 ? weight * (s.top + log(s.sum) - at) : 0;
        a.each[row] = {loss, 0, 0};
    }
}

extern "C" __global__ void tr_cuda_auxiliary_loss(tr_cuda_auxiliary_loss_args a) {
    TR_CUDA_BY_REAL(a.real, compare, a);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_auxiliary_loss);
