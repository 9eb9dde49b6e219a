// Dropout of one element, for kernels on the device.
#ifndef TR_OPS_DROPOUT_CUDA_ELEMENT_H
#define TR_OPS_DROPOUT_CUDA_ELEMENT_H

#include "ops/nn/dropout/cuda.h"
#include "ops/nn/dropout/draw.h"

#include "backend/cuda/vector.cuh"

// What element i is multiplied with: 0, or the inverse of the probability to keep it.
static __device__ inline float tr_cuda_multiplier(const tr_cuda_dropout &d, int64_t i) {
    if (d.probability == 0) {
        return 1;
    }
    int64_t at = d.first + i;
    tr_draw draw = tr__draw_open(&d.run, at / d.per_sample, d.draw_id, d.probability);
    return tr__draw_multiplier(&draw, (uint64_t)(at % d.per_sample));
}

// Those of N elements from i on, one after the other: N draws side by side would take
// more registers than what they are for.
template <int N>
static __device__ inline tr_cuda_vector<N> tr_cuda_multipliers(const tr_cuda_dropout &d,
                                                               int64_t i) {
    uint32_t kept = 0xffffffffu;
    float scale = 1;
    if (d.probability != 0) {
        kept = 0;
        TR_CUDA_NO_UNROLL
        for (int k = 0; k < N; k++) {
            float multiplier = tr_cuda_multiplier(d, i + k);
            kept |= (uint32_t)(multiplier != 0) << k;
            scale =
                fmaxf(scale, multiplier); // no multiplier of one that is kept is less
        }
    }
    tr_cuda_vector<N> v;
    TR_CUDA_UNROLL
    for (int k = 0; k < N; k++) {
        v.e[k] = kept >> k & 1 ? scale : 0;
    }
    return v;
}

#endif
