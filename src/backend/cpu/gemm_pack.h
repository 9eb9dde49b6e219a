// Parts of a product's operands in the order in which its inner loop reads them, for
// kernel files.
#ifndef TR_BACKEND_CPU_GEMM_PACK_H
#define TR_BACKEND_CPU_GEMM_PACK_H

#include "backend/cpu/gemm_tile.h"

#if defined(__clang__) // its shuffles take constants alone
static inline void tr__transpose(tr_vf *rows) {
    float all[TR_VW][TR_VW];
    for (int i = 0; i < TR_VW; i++) {
        tr_v_store(all[i], rows[i]);
    }
    for (int i = 0; i < TR_VW; i++) {
        for (int j = 0; j < TR_VW; j++) {
            rows[i][j] = all[j][i];
        }
    }
}
#else
// Exchanges the blocks of `side` by `side` elements beside the diagonal.
static inline __attribute__((always_inline)) void tr__transpose_blocks(tr_vf *rows,
                                                                       const int side) {
    tr_vi low, high;
    for (int i = 0; i < TR_VW; i++) {
        low[i] = i & side ? TR_VW + (i ^ side) : i;
        high[i] = i & side ? TR_VW + i : i ^ side;
    }
#pragma GCC unroll 16
    for (int i = 0; i < TR_VW; i++) {
        if (!(i & side)) {
            tr_vf a = rows[i], b = rows[i | side];
            rows[i] = __builtin_shuffle(a, b, low);
            rows[i | side] = __builtin_shuffle(a, b, high);
        }
    }
}

static inline __attribute__((always_inline)) void tr__transpose(tr_vf *rows) {
    tr__transpose_blocks(rows, 1);
    tr__transpose_blocks(rows, 2);
#if TR_VW >= 8
    tr__transpose_blocks(rows, 4);
#endif
#if TR_VW >= 16
    tr__transpose_blocks(rows, 8);
#endif
}
#endif

typedef struct tr_pack {
    const tr_number *from; // element (0, 0)
    int64_t step;          // elements from one along k to the next
    int64_t lane;          // and from one row of A, or column of B, to the next
    int64_t count, lanes;  // along k, and of rows or columns
} tr_pack;

static inline int64_t tr__pack_steps(const tr_pack *p) {
    return (p->count + TR_PAIR_STEPS - 1) / TR_PAIR_STEPS;
}

// Is every pair complete?
static inline bool tr__pack_even(const tr_pack *p) {
    return p->count % TR_PAIR_STEPS == 0;
}

static inline tr_pair tr__pack_pair(const tr_pack *p, int64_t step, int64_t lane) {
    const tr_number *from = p->from + step * TR_PAIR_STEPS * p->step + lane * p->lane;
#if defined(TR_PAIRS)
    uint32_t high = 2 * step + 1 < p->count ? from[p->step] : 0;
    return *from | high << 16;
#else
    return *from;
#endif
}

// out: [steps, width], zeros behind the lanes
static inline void tr__pack_slowly(const tr_pack *p, int64_t width, tr_pair *out) {
    for (int64_t s = 0; s < tr__pack_steps(p); s++) {
        for (int64_t i = 0; i < width; i++) {
            *out++ = i < p->lanes ? tr__pack_pair(p, s, i) : 0;
        }
    }
}

// A vector has a step of so many panels of A, which are `panel` apart.
enum { TR_PACK_PANELS = TR_VW / TR_TILE_ROWS };

// The compiler would take the way through memory.
#if defined(__AVX512F__)
static inline void tr__pack_deal(tr_vc v, int64_t panel, tr_pair *out) {
    __m256i low = _mm512_castsi512_si256((__m512i)v);
    __m256i high = _mm512_extracti64x4_epi64((__m512i)v, 1);
    memcpy(out, &low, sizeof low);
    memcpy(out + panel, &high, sizeof high);
}
#elif defined(__AVX2__)
static inline void tr__pack_deal(tr_vc v, int64_t panel, tr_pair *out) {
    __m128i low = _mm256_castsi256_si128((__m256i)v);
    __m128i high = _mm256_extracti128_si256((__m256i)v, 1);
    memcpy(out, &low, sizeof low);
    memcpy(out + panel, &high, sizeof high);
}
#else
static inline void tr__pack_deal(tr_vc v, int64_t panel, tr_pair *out) {
    const char *from = (const char *)&v;
    for (int q = 0; q < TR_PACK_PANELS; q++) {
        memcpy(out + q * panel, from + (size_t)q * TR_TILE_ROWS * sizeof *out,
               TR_TILE_ROWS * sizeof *out);
    }
}
#endif

// TR_VW lanes, each adjacent along k, for TR_VW steps.
static inline __attribute__((always_inline)) void
tr__pack_square(const tr_pack *p, int64_t step, tr_vf *rows) {
    const tr_number *from = p->from + step * TR_PAIR_STEPS;
#pragma GCC unroll 16
    for (int i = 0; i < TR_VW; i++) {
        tr_vf row; // the compiler would take an element of the array through memory
        __builtin_prefetch(from + (i + TR_VW) * p->lane);
        memcpy(&row, from + i * p->lane, sizeof row);
        rows[i] = row;
    }
    tr__transpose(rows);
}

// TR_VW rows of A, as panels: [steps, TR_TILE_ROWS], one after the other
static inline void tr__pack_along(const tr_pack *p, tr_pair *out) {
    int64_t steps = tr__pack_steps(p), panel = steps * TR_TILE_ROWS, s = 0;
    for (; s + TR_VW <= steps; s += TR_VW) {
        tr_vf rows[TR_VW];
        tr__pack_square(p, s, rows);
        for (int i = 0; i < TR_VW; i++) {
            tr__pack_deal((tr_vc)rows[i], panel, out + (s + i) * TR_TILE_ROWS);
        }
    }
    for (; s < steps; s++) {
        for (int i = 0; i < TR_VW; i++) {
            out[i / TR_TILE_ROWS * panel + s * TR_TILE_ROWS + i % TR_TILE_ROWS] =
                tr__pack_pair(p, s, i);
        }
    }
}

// The same of rows that are adjacent: so many at once that lines are read whole.
static inline void tr__pack_across(const tr_pack *p, int64_t lanes, tr_pair *out) {
    int64_t steps = tr__pack_steps(p), panel = steps * TR_TILE_ROWS;
    for (int64_t s = 0; s < steps; s++) {
        const tr_number *from = p->from + s * TR_PAIR_STEPS * p->step;
        for (int64_t i = 0; i < lanes; i += TR_VW) {
            tr__pack_deal(tr__pairs_of_rows(from + i, p->step), panel,
                          out + i * steps + s * TR_TILE_ROWS);
        }
    }
}

// out: panels of TR_TILE_ROWS rows, one after the other; zeros behind the rows
static inline void tr__pack_a(const tr_pack *p, tr_pair *out) {
    const int64_t together = p->lane == 1 ? 32 : TR_VW;
    int64_t steps = tr__pack_steps(p), i = 0;
    bool fast = TR_VW % TR_TILE_ROWS == 0 && tr__pack_even(p);
    tr_pack part = *p;
    for (; fast && i + together <= p->lanes; i += together) {
        part.from = p->from + i * p->lane;
        if (p->lane == 1) {
            tr__pack_across(&part, together, out + i * steps);
        } else if (p->step == 1) {
            tr__pack_along(&part, out + i * steps);
        }
    }
    for (; i < p->lanes; i += TR_TILE_ROWS) {
        part.from = p->from + i * p->lane;
        part.lanes = p->lanes - i;
        tr__pack_slowly(&part, TR_TILE_ROWS, out + i * steps);
    }
}

// TR_VW columns of B that are each adjacent along k: out: rows `width` apart
static inline void tr__pack_columns(const tr_pack *p, int64_t width, tr_pair *out) {
    int64_t steps = tr__pack_steps(p), s = 0;
    for (; s + TR_VW <= steps; s += TR_VW) {
        tr_vf rows[TR_VW];
        tr__pack_square(p, s, rows);
        for (int i = 0; i < TR_VW; i++) {
            tr_v_store_c(out + (s + i) * width, (tr_vc)rows[i]);
        }
    }
    for (; s < steps; s++) {
        for (int i = 0; i < TR_VW; i++) {
            out[s * width + i] = tr__pack_pair(p, s, i);
        }
    }
}

// Columns of B: out: [steps, width], the width being that of whole vectors; zeros
// behind the columns
static inline void tr__pack_b(const tr_pack *p, tr_pair *out) {
    int64_t width = (p->lanes + TR_VW - 1) / TR_VW * TR_VW;
    if (p->step != 1 || width != p->lanes || !tr__pack_even(p)) {
        tr__pack_slowly(p, width, out);
        return;
    }
    tr_pack part = *p;
    for (int64_t j = 0; j < width; j += TR_VW) {
        part.from = p->from + j * p->lane;
        tr__pack_columns(&part, width, out + j);
    }
}

#endif
