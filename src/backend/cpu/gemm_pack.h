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
    const float *from; // element (0, 0)
    int64_t step;      // elements from one step of the product to the next
    int64_t lane;      // and from one row of A, or column of B, to the next
    int64_t steps, lanes;
} tr_pack;

// out: [steps, width], zeros behind the lanes
static inline void tr__pack_slowly(const tr_pack *p, int64_t width, float *out) {
    for (int64_t s = 0; s < p->steps; s++) {
        for (int64_t i = 0; i < width; i++) {
            *out++ = i < p->lanes ? p->from[s * p->step + i * p->lane] : 0;
        }
    }
}

// A panel of A: out: [steps, TR_TILE_ROWS]
static inline void tr__pack_rows(const tr_pack *p, float *out) {
    if (p->lanes < TR_TILE_ROWS) {
        tr__pack_slowly(p, TR_TILE_ROWS, out);
        return;
    }
    for (int64_t s = 0; s < p->steps; s++) {
        for (int i = 0; i < TR_TILE_ROWS; i++) {
            out[i] = p->from[s * p->step + i * p->lane];
        }
        out += TR_TILE_ROWS;
    }
}

// Panels of an A whose rows are adjacent: so many at once that lines are read whole.
// out: [panels, steps, TR_TILE_ROWS]
static inline void tr__pack_panels(const tr_pack *p, int64_t panels, float *out) {
    for (int64_t s = 0; s < p->steps; s++) {
        const float *from = p->from + s * p->step;
        for (int64_t q = 0; q < panels; q++) {
            memcpy(out + (q * p->steps + s) * TR_TILE_ROWS, from + q * TR_TILE_ROWS,
                   TR_TILE_ROWS * sizeof *out);
        }
    }
}

enum { TR_PACK_PANELS = 4 };

// out: panels of TR_TILE_ROWS rows, one after the other; zeros behind the rows
static inline void tr__pack_a(const tr_pack *p, float *out) {
    const int64_t many = TR_PACK_PANELS * TR_TILE_ROWS;
    int64_t i = 0;
    tr_pack part = *p;
    for (; p->lane == 1 && i + many <= p->lanes; i += many) {
        part.from = p->from + i;
        tr__pack_panels(&part, TR_PACK_PANELS, out + i * p->steps);
    }
    for (; i < p->lanes; i += TR_TILE_ROWS) {
        part.from = p->from + i * p->lane;
        part.lanes = p->lanes - i;
        tr__pack_rows(&part, out + i * p->steps);
    }
}

// TR_VW columns that are each adjacent along the steps: out: rows `width` apart
static inline void tr__pack_transposed(const tr_pack *p, int64_t width, float *out) {
    int64_t s = 0;
    for (; s + TR_VW <= p->steps; s += TR_VW) {
        tr_vf rows[TR_VW];
        for (int i = 0; i < TR_VW; i++) {
            rows[i] = tr_v_load(p->from + i * p->lane + s);
        }
        tr__transpose(rows);
        for (int i = 0; i < TR_VW; i++) {
            tr_v_store(out + (s + i) * width, rows[i]);
        }
    }
    for (; s < p->steps; s++) {
        for (int i = 0; i < TR_VW; i++) {
            out[s * width + i] = p->from[i * p->lane + s];
        }
    }
}

// Columns of B: out: [steps, width], the width being that of whole vectors; zeros
// behind the columns
static inline void tr__pack_b(const tr_pack *p, float *out) {
    int64_t width = (p->lanes + TR_VW - 1) / TR_VW * TR_VW;
    if (p->step != 1 || width != p->lanes) {
        tr__pack_slowly(p, width, out);
        return;
    }
    tr_pack part = *p;
    for (int64_t j = 0; j < width; j += TR_VW) {
        part.from = p->from + j * p->lane;
        tr__pack_transposed(&part, width, out + j);
    }
}

#endif
