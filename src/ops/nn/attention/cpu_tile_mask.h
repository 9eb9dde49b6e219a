// The multipliers of dropout for a strip of a tile.
#ifndef TR_OPS_NN_ATTENTION_CPU_TILE_MASK_H
#define TR_OPS_NN_ATTENTION_CPU_TILE_MASK_H

#include "ops/nn/attention/cpu_tile.h"
#include "ops/nn/attention/sizes.h"
#include "ops/nn/dropout/cpu_draw.h"

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

// `v` in the lanes from `first` to before `end`, `other` in the rest.
static inline tr_vf tr_v_between(tr_vf v, int64_t first, int64_t end, float other) {
    tr_vi lane = (tr_vi)tr_v_count_u(0);
    tr_vi inside = (lane >= (int32_t)first) & (lane < (int32_t)end);
    return tr_v_select(inside, v, tr_v_set(other));
}

// Where the diagonal lies in the tile of queries from `query` and keys from `key`
// (tr_causal): both ways, behind all of it.
static inline int64_t tr_v_diagonal(const tr_attention_sizes *s, int64_t query,
                                    int64_t key) {
    return s->both ? TR_TILE : query - key;
}

// How many of `keys` keys from `key` lie before the end of the query's document. A
// document that begins behind the query is another one, and so are those behind it.
static inline int64_t tr_v_document_keys(const tr_attention_sizes *s, int64_t query,
                                         int64_t key, int64_t keys) {
    int64_t low = tr__min_i64(tr__max_i64(query - key + 1, 0), keys);
    int64_t high = tr__min_i64(keys, s->context - key);
    while (s->places && low < high) {
        int64_t middle = low + (high - low) / 2, at = key + middle;
        bool own = at - s->places[at] <= query;
        low = own ? middle + 1 : low;
        high = own ? high : middle;
    }
    return high;
}

// The keys of a tile that a query sees, by column.
typedef struct tr_seen {
    int64_t first, end;
} tr_seen;

// Those of the query at `query` among `keys` keys from `key`.
static inline tr_seen tr_v_seen(const tr_attention_sizes *s, int64_t query, int64_t key,
                                int64_t keys) {
    if (keys == 0) {
        return (tr_seen){0, 0}; // a row of padding is no query
    }
    int64_t end = s->both ? tr_v_document_keys(s, query, key, keys)
                          : tr__min_i64(keys, query - key + 1);
    int64_t first = tr__max_i64(0, tr__attention_oldest(s, query) - key);
    return (tr_seen){tr__min_i64(first, end), end};
}

// Is the vector from column j inside of what is seen?
static inline bool tr_v_sees_all(tr_seen seen, int64_t j) {
    return j >= seen.first && j + TR_VW <= seen.end;
}

// The first vector in which something is seen.
static inline int64_t tr_v_begin(tr_seen seen) {
    return seen.first / TR_VW * TR_VW;
}

#endif
