#include "ops/dropout/cuda_element.cuh"

static __global__ void dropout_add(const float *r, const float *x, float *y,
                                   int64_t count, tr_cuda_dropout dropout, bool add) {
    TR_CUDA_LOOP(i, count) {
        float value = x[i] * tr_cuda_multiplier(dropout, i);
        tr_cuda_put(&y[i], r ? r[i] + value : value, add);
    }
}

void tr_cuda_dropout_add(const float *r, const float *x, float *y, int64_t count,
                         tr_cuda_dropout dropout, bool add, void *stream) {
    TR_CUDA_EACH(dropout_add, count, stream, r, x, y, count, dropout, add);
}
