#include "ops/relu/cuda.h"

#include "backend/cuda/device.cuh"

static __global__ void relu(const float *x, float *y, int64_t count, bool add) {
    TR_CUDA_LOOP(i, count) {
        tr_cuda_put(&y[i], x[i] < 0 ? 0 : x[i], add); // NaN stays
    }
}

static __global__ void relu_backward(const float *dy, const float *y, float *dx,
                                     int64_t count, bool add) {
    TR_CUDA_LOOP(i, count) {
        tr_cuda_put(&dx[i], y[i] > 0 ? dy[i] : 0, add);
    }
}

void tr_cuda_relu(const float *x, float *y, int64_t count, bool add, void *stream) {
    TR_CUDA_EACH(relu, count, stream, x, y, count, add);
}

void tr_cuda_relu_backward(const float *dy, const float *y, float *dx, int64_t count,
                           bool add, void *stream) {
    TR_CUDA_EACH(relu_backward, count, stream, dy, y, dx, count, add);
}
