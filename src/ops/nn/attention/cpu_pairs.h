// From a tensor's rows, and from tiles of f32, to the padded pairs that the products
// read (backend/cpu/pair.h). A matrix [rows, columns] lies as "rows", [rows, columns /
// TR_PAIR_STEPS], where a product steps along its rows, and as "steps", [rows /
// TR_PAIR_STEPS, columns], where it steps down its columns. Where a pair is one number
// both are the same and lie in one place.
#ifndef TR_OPS_NN_ATTENTION_CPU_PAIRS_H
#define TR_OPS_NN_ATTENTION_CPU_PAIRS_H

#include "backend/cpu/pair.h"
#include "backend/cpu/real.h"
#include "base/checked.h"
#include "ops/nn/attention/cpu_tile.h"

// Columns of a padded buffer for `depth` columns.
static inline int64_t tr_v_padded(int64_t depth) {
    return tr__round_up(depth, TR_VW * TR_PAIR_STEPS);
}

// Pairs of one such row.
static inline int64_t tr_v_row_pairs(int64_t depth) {
    return tr_v_padded(depth) / TR_PAIR_STEPS;
}

// A tile of f32, [TR_TILE, TR_TILE], and after it what it is as pairs.
static inline int64_t tr_v_tile_floats(void) {
    return TR_TILE * TR_TILE * (TR_PAIR_STEPS == 1 ? 1 : 2);
}

// Where those of the tile begin: rows, [TR_TILE, TR_TILE / TR_PAIR_STEPS].
static inline tr_pair *tr_v_tile_rows(float *tile) {
    return (tr_pair *)(TR_PAIR_STEPS == 1 ? tile : tile + TR_TILE * TR_TILE);
}

// Steps, [TR_TILE / TR_PAIR_STEPS, TR_TILE].
static inline tr_pair *tr_v_tile_steps(float *tile) {
    return (tr_pair *)(TR_PAIR_STEPS == 1 ? tile : tile + TR_TILE * TR_TILE * 3 / 2);
}

#if defined(TR_PAIRS)

// src: [rows, depth], rows src_row apart. dst: [padded_rows, tr_v_row_pairs(depth)] =
// src, zeros around it.
static inline void tr_v_pack_rows(const tr_real *src, int64_t src_row, int64_t rows,
                                  int64_t depth, int64_t padded_rows, tr_pair *dst) {
    size_t bytes = (size_t)depth * sizeof *src;
    size_t row_bytes = (size_t)tr_v_row_pairs(depth) * sizeof *dst;
    char *to = (char *)dst;
    for (int64_t r = 0; r < rows; r++, src += src_row, to += row_bytes) {
        memcpy(to, src, bytes);
        memset(to + bytes, 0, row_bytes - bytes);
    }
    memset(to, 0, (size_t)(padded_rows - rows) * row_bytes);
}

// The first `count` numbers of a row in the low halves of pairs, zeros after them.
static inline tr_vc tr_v_low_halves(const tr_real *row, int64_t count) {
    tr_vh bits = {0};
    if (count >= TR_VW) {
        bits = tr_v_load_h(row);
    } else if (count > 0) {
        memcpy(&bits, row, (size_t)count * sizeof *row);
    }
    return __builtin_convertvector(bits, tr_vu);
}

// dst: [padded_rows / 2, tr_v_padded(depth)], zeros around src.
static inline void tr_v_pack_steps(const tr_real *src, int64_t src_row, int64_t rows,
                                   int64_t depth, int64_t padded_rows, tr_pair *dst) {
    int64_t width = tr_v_padded(depth);
    for (int64_t r = 0; r < padded_rows; r += 2, src += 2 * src_row, dst += width) {
        int64_t first = r < rows ? depth : 0, second = r + 1 < rows ? depth : 0;
        for (int64_t d = 0; d < width; d += TR_VW) {
            tr_vc low = tr_v_low_halves(src + d, first - d);
            tr_vc high = tr_v_low_halves(src + src_row + d, second - d);
            tr_v_store_c(dst + d, low | high << 16);
        }
    }
}

// Both of them.
static inline void tr_v_pack_both(const tr_real *src, int64_t src_row, int64_t rows,
                                  int64_t depth, int64_t padded_rows, tr_pair *dst_rows,
                                  tr_pair *dst_steps) {
    tr_v_pack_rows(src, src_row, rows, depth, padded_rows, dst_rows);
    tr_v_pack_steps(src, src_row, rows, depth, padded_rows, dst_steps);
}

// a, then b, rounded to bf16.
static inline __m512i tr_v_narrow(const float *a, const float *b) {
    return (__m512i)_mm512_cvtne2ps_pbh((__m512)tr_v_load(b), (__m512)tr_v_load(a));
}

// The first `columns` columns of a strip of TR_STRIP rows of a tile, TR_TILE apart, as
// rows TR_TILE / 2 apart.
static inline void tr_v_narrow_rows(const float *src, int64_t columns, tr_pair *dst) {
    for (int64_t r = 0; r < TR_STRIP; r++, src += TR_TILE, dst += TR_TILE / 2) {
        for (int64_t j = 0; j < columns; j += 2 * TR_VW) {
            tr_v_store_c(dst + j / 2, (tr_vc)tr_v_narrow(src + j, src + j + TR_VW));
        }
    }
}

// The same as steps, TR_TILE apart.
static inline void tr_v_narrow_steps(const float *src, int64_t columns, tr_pair *dst) {
    uint16_t order[2 * TR_VW]; // a word of the first row, one of the second
    for (int i = 0; i < 2 * TR_VW; i++) {
        order[i] = (uint16_t)(i / 2 + i % 2 * TR_VW);
    }
    __m512i index = _mm512_loadu_si512(order);
    for (int64_t r = 0; r < TR_STRIP; r += 2, src += 2 * TR_TILE, dst += TR_TILE) {
        for (int64_t j = 0; j < columns; j += TR_VW) {
            __m512i two = tr_v_narrow(src + j, src + TR_TILE + j);
            tr_v_store_c(dst + j, (tr_vc)_mm512_permutexvar_epi16(index, two));
        }
    }
}

#else

static inline void tr_v_pack_rows(const tr_real *src, int64_t src_row, int64_t rows,
                                  int64_t depth, int64_t padded_rows, tr_pair *dst) {
    int64_t width = tr_v_padded(depth), whole = depth / TR_VW * TR_VW;
    int rest = (int)(depth - whole);
    for (int64_t r = 0; r < rows; r++, src += src_row, dst += width) {
        for (int64_t d = 0; d < whole; d += TR_VW) {
            tr_v_store(dst + d, tr_v_load_r(src + d));
        }
        if (rest > 0) {
            tr_v_store(dst + whole, tr_v_load_part_r(src + whole, rest, 0));
        }
    }
    memset(dst, 0, (size_t)((padded_rows - rows) * width) * sizeof *dst);
}

static inline void tr_v_pack_steps(const tr_real *src, int64_t src_row, int64_t rows,
                                   int64_t depth, int64_t padded_rows, tr_pair *dst) {
    tr_v_pack_rows(src, src_row, rows, depth, padded_rows, dst);
}

static inline void tr_v_pack_both(const tr_real *src, int64_t src_row, int64_t rows,
                                  int64_t depth, int64_t padded_rows, tr_pair *dst_rows,
                                  tr_pair *dst_steps) {
    (void)dst_steps; // the same place
    tr_v_pack_rows(src, src_row, rows, depth, padded_rows, dst_rows);
}

static inline void tr_v_narrow_rows(const float *src, int64_t columns, tr_pair *dst) {
    (void)src, (void)columns, (void)dst; // the same place
}

static inline void tr_v_narrow_steps(const float *src, int64_t columns, tr_pair *dst) {
    (void)src, (void)columns, (void)dst;
}

#endif

#endif
