// The multipliers of dropout for a strip of a tile.
#ifndef TR_OPS_ATTENTION_TILE_MASK_H
#define TR_OPS_ATTENTION_TILE_MASK_H

#include "ops/attention/sizes.h"
#include "ops/attention/tile.h"
#include "ops/dropout/draw_simd.h"

_Static_assert((int)TR_STRIP == (int)TR_DRAW_ROWS, "a strip is a row of groups");

// One strip of TR_STRIP queries by TR_TILE keys, in the order it is drawn.
typedef struct tr_strip_mask {
    float group[TR_TILE / TR_DRAW_LANES][TR_DRAW_ROWS][TR_DRAW_LANES];
} tr_strip_mask;

// For the `keys` keys from `key` (a multiple of TR_TILE) of the strip from `query`.
static inline void tr_v_draw_strip(const tr_attention_sizes *s, const tr_draw *draw,
                                   int64_t head, int64_t query, int64_t key,
                                   int64_t keys, tr_strip_mask *mask) {
    uint64_t first = tr__attention_group(s, head, query, key);
    for (int64_t g = 0; g * TR_DRAW_LANES < keys; g++) {
        tr_v_draw_group(draw, first + (uint64_t)g, mask->group[g][0]);
    }
}

// The multipliers of row `row` of the strip for the TR_VW keys from column `column`.
static inline tr_vf tr_v_mask(const tr_strip_mask *mask, int64_t row, int64_t column) {
    return tr_v_load(&mask->group[column / TR_DRAW_LANES][row][column % TR_DRAW_LANES]);
}

// `v` in the first `count` lanes, `other` in the rest.
static inline tr_vf tr_v_first(tr_vf v, int64_t count, float other) {
    tr_vi lane = (tr_vi)tr_v_count_u(0);
    return tr_v_select(lane < (int32_t)count, v, tr_v_set(other));
}

#endif
