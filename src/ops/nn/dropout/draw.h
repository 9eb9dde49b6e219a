// The draws of dropout: which elements are kept. A function of the run's seed, the
// step, the global sample, the unit, the draw within the unit and the element within
// the sample, so the mask is the same however the batch is cut, whoever draws it, in
// the forward, the backward and when recomputed.
//
// A draw is 16 bits wide; one Philox block makes eight. Draws come in groups of 128
// consecutive elements: 16 blocks side by side, one for each of 16 lanes, each block's
// eight draws 16 elements apart. So 16 blocks computed as vectors are already in the
// order of the elements (cpu_draw.h).
#ifndef TR_OPS_NN_DROPOUT_DRAW_H
#define TR_OPS_NN_DROPOUT_DRAW_H

#include "base/rng.h"

#include <tranche/extend/op.h>

enum {
    TR_DRAW_LANES = 16,
    TR_DRAW_ROWS = 8, // draws of one block
    TR_DRAW_GROUP = TR_DRAW_LANES * TR_DRAW_ROWS,
};

// One sample's stream of draws.
typedef struct tr_draw {
    uint32_t place, sample, step; // the counter's words 1 .. 3; word 0 is the block
    uint32_t key[2];
    uint32_t threshold; // an element is dropped when its draw is below
    float scale;        // of the kept ones
} tr_draw;

// The draws of row `row` of the micro-batch (global sample run->sample + row).
// probability: in [0, 1), rounded to 1/65536; `scale` is the inverse of the rounded
// probability to keep, so the mean is kept exactly. Streams differ for units and draw
// ids below 2^16, samples below 2^48, steps below 2^32, elements below 2^51.
TR_DEVICE static inline tr_draw tr__draw_open(const tr_run_context *run, int64_t row,
                                              uint32_t draw_id, float probability) {
    uint64_t sample = run->sample + (uint64_t)row;
    uint32_t threshold = (uint32_t)(probability * 65536.0f + 0.5f);
    threshold = threshold < 65535 ? threshold : 65535;
    tr_draw draw;
    draw.place = run->unit << 16 | draw_id;
    draw.sample = (uint32_t)sample;
    draw.step = (uint32_t)run->step;
    draw.key[0] = (uint32_t)run->seed;
    draw.key[1] = (uint32_t)(run->seed >> 32) ^ (uint32_t)(sample >> 32);
    draw.threshold = threshold;
    draw.scale = 65536.0f / (float)(65536 - threshold);
    return draw;
}

// The second key word also holds what the block's index has above 32 bits.
TR_DEVICE static inline uint32_t tr__draw_key1(const tr_draw *draw, uint64_t block) {
    return draw->key[1] ^ (uint32_t)(block >> 32) << 16;
}

// The eight draws of a block, two in each word.
TR_DEVICE static inline void tr__draw_bits(const tr_draw *draw, uint64_t block,
                                           uint32_t bits[4]) {
    uint32_t counter[4] = {(uint32_t)block, draw->place, draw->sample, draw->step};
    uint32_t key[2] = {draw->key[0], tr__draw_key1(draw, block)};
    tr__philox(counter, key, TR_PHILOX_ROUNDS, bits);
}

// Which elements of a block are kept: bit i for the one i * TR_DRAW_LANES elements
// behind its first.
TR_DEVICE static inline uint32_t tr__draw_keeps(const tr_draw *draw, uint64_t block) {
    uint32_t bits[4], keeps = 0;
    tr__draw_bits(draw, block, bits);
    for (uint32_t i = 0; i < 4; i++) {
        keeps |= (uint32_t)((bits[i] & 0xFFFF) >= draw->threshold) << 2 * i;
        keeps |= (uint32_t)(bits[i] >> 16 >= draw->threshold) << (2 * i + 1);
    }
    return keeps;
}

TR_DEVICE static inline bool tr__draw_keep(const tr_draw *draw, uint64_t element) {
    uint64_t block = element / TR_DRAW_GROUP * TR_DRAW_LANES + element % TR_DRAW_LANES;
    uint32_t row = (uint32_t)(element / TR_DRAW_LANES % TR_DRAW_ROWS);
    uint32_t bits[4];
    tr__draw_bits(draw, block, bits);
    // An index that is known only here would put the array of a GPU into its memory.
    uint32_t low = row < 2 ? bits[0] : bits[1], high = row < 6 ? bits[2] : bits[3];
    uint32_t two = row < 4 ? low : high;
    return (two >> 16 * (row % 2) & 0xFFFF) >= draw->threshold;
}

// What the element is multiplied with: 0 or `scale`.
TR_DEVICE static inline float tr__draw_multiplier(const tr_draw *draw,
                                                  uint64_t element) {
    return tr__draw_keep(draw, element) ? draw->scale : 0.0f;
}

#endif
