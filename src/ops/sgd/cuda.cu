#include "ops/sgd/cuda.h"

#include "backend/cuda/device.cuh"

static __global__ void update(tr_cuda_sgd k, float *p, const float *g, float *buffer,
                              int64_t count) {
    TR_CUDA_LOOP(i, count) {
        float step = k.grad_scale * g[i] + k.weight_decay * p[i];
        if (buffer) {
            float value = k.keep * (k.first ? 0 : buffer[i]) + k.take * step;
            step = k.from_g * step + k.from_b * value;
            buffer[i] = value;
        }
        p[i] = p[i] - k.lr * step;
    }
}

void tr_cuda_sgd_update(tr_cuda_sgd k, float *p, const float *g, float *buffer,
                        int64_t count, void *stream) {
    TR_CUDA_EACH(update, count, stream, k, p, g, buffer, count);
}
