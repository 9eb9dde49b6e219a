// The functions of backend/cuda/mma.cuh on the host. A copy into shared memory is made
// when its thread waits for it, and not before.
#ifndef TEST_CUDA_SHIM_MMA_H
#define TEST_CUDA_SHIM_MMA_H

#include "base/half.h"

namespace shim {
// ---- fibers.cpp
void *shared(); // of the block
void begin_copy(void *to, const void *from, size_t bytes, bool there);
void group_copies();
void wait_copies(int left);

struct lane_factors {
    float a[8], b[4]; // of the lane's fragments
};

static inline float factor(const gift *of, size_t at) {
    float x;
    memcpy(&x, (const char *)of + at * sizeof x, sizeof x);
    return x;
}

template <float (*WIDE)(uint16_t)>
void multiply(float *c, const uint32_t *a, const uint32_t *b) {
    lane_factors mine;
    for (int i = 0; i < 8; i++) {
        mine.a[i] = WIDE((uint16_t)(a[i / 2] >> 16 * (i % 2)));
    }
    for (int i = 0; i < 4; i++) {
        mine.b[i] = WIDE((uint16_t)(b[i / 2] >> 16 * (i % 2)));
    }
    const gift *all = gather(&mine, sizeof mine);
    const gift *of_a = all + lane() / 4 * 4, *of_b = all + lane() % 4 * 8;
    float rows[2][16], columns[2][16]; // of A, and of B
    for (int k = 0; k < 16; k++) {
        int of = k % 8 / 2;
        for (int i = 0; i < 2; i++) {
            rows[i][k] = factor(of_a + of, k / 8 * 4 + i * 2 + k % 2);
            columns[i][k] = factor(of_b + i * 4 + of, 8 + k / 8 * 2 + k % 2);
        }
    }
    for (int k = 0; k < 16; k++) {
        for (int i = 0; i < 4; i++) {
            c[i] += rows[i / 2][k] * columns[i % 2][k];
        }
    }
}

// Lane l / 4's row, or column, of each matrix.
static inline void load(uint32_t *r, const void *row, bool transposed) {
    const gift *all = gather(&row, sizeof row);
    for (int i = 0; i < 4; i++) {
        uint16_t pair[2];
        for (int k = 0; k < 2; k++) {
            int along = lane() % 4 * 2 + k, of = lane() / 4;
            const uint16_t *from;
            memcpy(&from, &all[i * 8 + (transposed ? along : of)], sizeof from);
            pair[k] = from[transposed ? of : along];
        }
        r[i] = pair[0] | (uint32_t)pair[1] << 16;
    }
}
} // namespace shim

static inline void *tr_cuda_shared() {
    return shim::shared();
}

static inline void tr_cuda_mma_bf16(float *c, const uint32_t *a, const uint32_t *b) {
    shim::multiply<tr__bf16_to_f32>(c, a, b);
}

static inline void tr_cuda_mma_f16(float *c, const uint32_t *a, const uint32_t *b) {
    shim::multiply<tr__f16_to_f32>(c, a, b);
}

static inline void tr_cuda_load_matrices(uint32_t *r, const void *row) {
    shim::load(r, row, false);
}

static inline void tr_cuda_load_transposed(uint32_t *r, const void *row) {
    shim::load(r, row, true);
}

static inline void tr_cuda_copy16(void *to, const void *from, bool there) {
    shim::begin_copy(to, from, 16, there);
}

static inline void tr_cuda_copy4(void *to, const void *from, bool there) {
    shim::begin_copy(to, from, 4, there);
}

static inline void tr_cuda_copy_group() {
    shim::group_copies();
}

template <int LEFT> static inline void tr_cuda_copy_wait() {
    shim::wait_copies(LEFT);
}

static inline uint32_t tr_cuda_pack_bf16(float low, float high) {
    return tr__bf16_of_f32(low) | (uint32_t)tr__bf16_of_f32(high) << 16;
}

static inline uint32_t tr_cuda_pack_f16(float low, float high) {
    return tr__f16_of_f32(low) | (uint32_t)tr__f16_of_f32(high) << 16;
}

#endif
