// How the kernels of batch norm go through [pixels, channels]: in chunks that stay in
// the first cache, and in each one vector of channels after the other, so that what a
// channel is multiplied with stays in registers.
#ifndef TR_OPS_NN_BATCH_NORM_CPU_CHUNKS_H
#define TR_OPS_NN_BATCH_NORM_CPU_CHUNKS_H

#include "backend/cpu/parallel.h"
#include "backend/cpu/simd.h"
#include "ops/nn/batch_norm/operands.h"

enum {
    TR_CHUNK_FLOATS = 4096, // of x, in a chunk
    TR_CHUNK_MOST = 128,    // pixels
    TR_CHANNEL_LINE = 16,   // channels are padded to cache lines where threads write
};

static inline int64_t tr__channels_padded(int64_t channels) {
    return (channels + TR_CHANNEL_LINE - 1) / TR_CHANNEL_LINE * TR_CHANNEL_LINE;
}

static inline int64_t tr__chunk_pixels(int64_t channels) {
    int64_t pixels = TR_CHUNK_FLOATS / channels;
    return pixels < 4 ? 4 : pixels > TR_CHUNK_MOST ? TR_CHUNK_MOST : pixels;
}

// The first `count` (a constant, as a rule TR_VW) floats; others are 0.
__attribute__((always_inline)) static inline tr_vf tr__chunk_load(const float *p,
                                                                  int count) {
    return count == TR_VW ? tr_v_load(p) : tr_v_load_part(p, count, 0);
}

__attribute__((always_inline)) static inline void tr__chunk_store(float *p, tr_vf v,
                                                                  int count) {
    if (count == TR_VW) {
        tr_v_store(p, v);
    } else {
        tr_v_store_part(p, v, count);
    }
}

// Sums are in f64: see batch_norm.h.
typedef double tr_chunk_sums __attribute__((vector_size(TR_VW * 8)));

__attribute__((always_inline)) static inline tr_chunk_sums tr__chunk_wide(tr_vf v) {
    return __builtin_convertvector(v, tr_chunk_sums);
}

// sums[i] += v[i], for the first `count`.
__attribute__((always_inline)) static inline void
tr__chunk_add(double *sums, const tr_chunk_sums *add, int count) {
    tr_chunk_sums v = *add;
    for (int i = 0; i < count; i++) {
        sums[i] += v[i];
    }
}

#endif
