// What a block finds out about a row of logits of any type, in double: for losses of
// few classes.
#ifndef TR_OPS_NN_LINEAR_CROSS_ENTROPY_CUDA_CLASSES_H
#define TR_OPS_NN_LINEAR_CROSS_ENTROPY_CUDA_CLASSES_H

#include "backend/cuda/real.cuh"
#include "ops/nn/linear_cross_entropy/cuda_row.cuh"

// The largest logit, the first of equal ones, and the sum of all e^(logit - largest).
// All threads of the block call it.
template <class T>
static __device__ inline tr_cuda_row_softmax tr_cuda_classes_read(const T *row,
                                                                  int64_t classes) {
    tr_cuda_row_softmax s = {-INFINITY, classes, 0};
    for (int64_t c = threadIdx.x; c < classes; c += TR_CUDA_THREADS) {
        float x = tr_cuda_get(row[c]);
        s.place = x > s.top ? c : s.place;
        s.top = x > s.top ? x : s.top;
    }
    tr_cuda_row_best<TR_CUDA_THREADS>(&s.top, &s.place);
    for (int64_t c = threadIdx.x; c < classes; c += TR_CUDA_THREADS) {
        s.sum += exp((double)tr_cuda_get(row[c]) - s.top);
    }
    s.sum = tr_cuda_block_sum(s.sum);
    return s;
}

#endif
