#include "ops/nn/element_loss/cuda.h"

#include "backend/cuda/real.cuh"
#include "backend/cuda/sums.cuh"
#include "ops/nn/element_loss/element.h"

template <class T> static __device__ void compare(const tr_cuda_element_loss_args &a) {
    tr_element_loss_kind kind = (tr_element_loss_kind)a.kind;
    const T *x = (const T *)a.x;
    T *dx = (T *)a.dx;
    double sums[TR_SUMS] = {0, 0, 0};
    TR_CUDA_LOOP(i, a.count) {
        double value = tr_cuda_get(x[i]), target = a.targets[i];
        tr__element_add(kind, value, target, sums);
        if (dx) {
            bool there = !isnan(target);
            double slope = there ? tr__element_slope(kind, value, target) * a.seed : 0;
            double before = a.add ? tr_cuda_get(dx[i]) : 0;
            tr_cuda_set(&dx[i], (float)(before + slope));
        }
    }
    double loss = tr_cuda_block_sum(sums[TR_SUM_LOSS]);
    double count = tr_cuda_block_sum(sums[TR_SUM_COUNT]);
    double correct = tr_cuda_block_sum(sums[TR_SUM_CORRECT]);
    if (threadIdx.x == 0) {
        a.each[blockIdx.x] = {loss, count, correct};
    }
}

extern "C" __global__ void tr_cuda_element_loss(tr_cuda_element_loss_args a) {
    TR_CUDA_BY_REAL(a.real, compare, a);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_element_loss);
