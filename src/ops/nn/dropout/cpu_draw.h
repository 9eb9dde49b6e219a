// draw.h by vectors, for kernel files.
#ifndef TR_OPS_NN_DROPOUT_CPU_DRAW_H
#define TR_OPS_NN_DROPOUT_CPU_DRAW_H

#include "backend/cpu/simd.h"
#include "ops/nn/dropout/draw.h"

// One round of Philox, on TR_VW blocks: c is the counter, k0 and k1 the round's key.
static inline void tr__v_philox_round(tr_vu c[4], tr_vu k0, tr_vu k1) {
    tr_vu high0, high1;
    tr_vu low0 = tr_v_mul_wide(c[0], tr_v_set_u(TR_PHILOX_M0), &high0);
    tr_vu low1 = tr_v_mul_wide(c[2], tr_v_set_u(TR_PHILOX_M1), &high1);
    c[0] = high1 ^ c[1] ^ k0;
    c[1] = low1;
    c[2] = high0 ^ c[3] ^ k1;
    c[3] = low0;
}

// The multipliers of the 128 elements of a group (elements group * 128 and on).
// dst: [TR_DRAW_GROUP] f32, by rows of TR_DRAW_LANES.
static inline void tr_v_draw_group(const tr_draw *draw, uint64_t group, float *dst) {
    const tr_vu threshold = tr_v_set_u(draw->threshold);
    const tr_vf scale = tr_v_set(draw->scale), zero = tr_v_set(0);
    uint64_t block = group * TR_DRAW_LANES;
    uint32_t key1 = tr__draw_key1(draw, block);
    for (int lane = 0; lane < TR_DRAW_LANES; lane += TR_VW) {
        tr_vu c[4] = {tr_v_count_u((uint32_t)block + (uint32_t)lane),
                      tr_v_set_u(draw->place), tr_v_set_u(draw->sample),
                      tr_v_set_u(draw->step)};
        for (uint32_t r = 0; r < TR_PHILOX_ROUNDS; r++) {
            tr__v_philox_round(c, tr_v_set_u(draw->key[0] + r * TR_PHILOX_W0),
                               tr_v_set_u(key1 + r * TR_PHILOX_W1));
        }
        for (int w = 0; w < 4; w++) {
            float *to = dst + 2 * w * TR_DRAW_LANES + lane;
            tr_vi low = (tr_vi)((c[w] & 0xFFFF) >= threshold);
            tr_vi high = (tr_vi)((c[w] >> 16) >= threshold);
            tr_v_store(to, tr_v_select(low, scale, zero));
            tr_v_store(to + TR_DRAW_LANES, tr_v_select(high, scale, zero));
        }
    }
}

// The multipliers of elements first .. first + count - 1. dst: [count] f32. Whole
// groups are cheap: cut long runs at multiples of TR_DRAW_GROUP.
static inline void tr_v_draw_fill(const tr_draw *draw, uint64_t first, int64_t count,
                                  float *dst) {
    while (count > 0) {
        uint64_t group = first / TR_DRAW_GROUP;
        int64_t skip = (int64_t)(first % TR_DRAW_GROUP);
        int64_t part = TR_DRAW_GROUP - skip < count ? TR_DRAW_GROUP - skip : count;
        if (part == TR_DRAW_GROUP) {
            tr_v_draw_group(draw, group, dst);
        } else {
            float all[TR_DRAW_GROUP];
            tr_v_draw_group(draw, group, all);
            memcpy(dst, all + skip, (size_t)part * sizeof *dst);
        }
        first += (uint64_t)part;
        dst += part;
        count -= part;
    }
}

#endif
