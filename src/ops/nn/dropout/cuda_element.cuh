// Dropout of one element, for kernels on the device.
#ifndef TR_OPS_DROPOUT_CUDA_ELEMENT_H
#define TR_OPS_DROPOUT_CUDA_ELEMENT_H

#include "ops/nn/dropout/cuda.h"
#include "ops/nn/dropout/draw.h"

#include "backend/cuda/device.cuh"

// What element i is multiplied with: 0, or the inverse of the probability to keep it.
static __device__ inline float tr_cuda_multiplier(const tr_cuda_dropout &d, int64_t i) {
    if (d.probability == 0) {
        return 1;
    }
    int64_t at = d.first + i;
    tr_draw draw = tr__draw_open(&d.run, at / d.per_sample, d.draw_id, d.probability);
    return tr__draw_multiplier(&draw, (uint64_t)(at % d.per_sample));
}

#endif
