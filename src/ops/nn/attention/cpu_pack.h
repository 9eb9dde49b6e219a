// Tiles turned over, and tiles written to a tensor's rows. What products read is padded
// and contiguous: rows of a [B, S, 3 C] tensor can all fall on one set of the cache.
#ifndef TR_OPS_NN_ATTENTION_CPU_PACK_H
#define TR_OPS_NN_ATTENTION_CPU_PACK_H

#include "ops/nn/attention/cpu_pairs.h"

#include <stdbool.h>

// dst: [rows, depth], rows dst_row apart, = scale * src, or += with `add`.
// src: [rows, tr_v_padded(depth)].
static inline void tr_v_unpack(const float *src, int64_t rows, int64_t depth,
                               float scale, bool add, int64_t dst_row, tr_real *dst) {
    int64_t width = tr_v_padded(depth), whole = depth / TR_VW * TR_VW;
    int rest = (int)(depth - whole);
    for (int64_t r = 0; r < rows; r++, src += width, dst += dst_row) {
        for (int64_t d = 0; d < whole; d += TR_VW) {
            tr_vf value = tr_v_load(src + d) * scale;
            tr_v_store_r(dst + d, add ? tr_v_load_r(dst + d) + value : value);
        }
        if (rest > 0) {
            tr_vf value = tr_v_load(src + whole) * scale;
            tr_vf old = tr_v_load_part_r(dst + whole, add ? rest : 0, 0);
            tr_v_store_part_r(dst + whole, old + value, rest);
        }
    }
}

// The lanes of a and b in turn: the lower halves, the upper halves.
#if TR_VW == 16
#define TR_V_ZIP_LOW(a, b)                                                             \
    __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7,  \
                            23)
#define TR_V_ZIP_HIGH(a, b)                                                            \
    __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14,    \
                            30, 15, 31)
#elif TR_VW == 8
#define TR_V_ZIP_LOW(a, b)  __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define TR_V_ZIP_HIGH(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#else
#define TR_V_ZIP_LOW(a, b)  __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define TR_V_ZIP_HIGH(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#endif

// One block of TR_VW by TR_VW: dealing the rows like a pack of cards, as often as TR_VW
// has bits, transposes it.
static inline void tr_v_transpose_block(const tr_pair *src, int64_t src_row,
                                        tr_pair *dst, int64_t dst_row) {
    tr_vc row[2][TR_VW];
    int from = 0;
#pragma GCC unroll 16
    for (int i = 0; i < TR_VW; i++) {
        row[0][i] = tr_v_load_c(src + i * src_row);
    }
#pragma GCC unroll 4
    for (int n = 1; n < TR_VW; n *= 2, from = !from) {
#pragma GCC unroll 8
        for (int i = 0; i < TR_VW / 2; i++) {
            tr_vc a = row[from][i], b = row[from][i + TR_VW / 2];
            row[!from][2 * i] = TR_V_ZIP_LOW(a, b);
            row[!from][2 * i + 1] = TR_V_ZIP_HIGH(a, b);
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < TR_VW; i++) {
        tr_v_store_c(dst + i * dst_row, row[from][i]);
    }
}

// src: [rows, columns] pairs, contiguous; dst: [columns, TR_TILE] = its transpose. Both
// multiples of TR_VW.
static inline void tr_v_transpose(const tr_pair *src, int64_t rows, int64_t columns,
                                  tr_pair *dst) {
    for (int64_t r = 0; r < rows; r += TR_VW) {
        for (int64_t c = 0; c < columns; c += TR_VW) {
            tr_v_transpose_block(src + r * columns + c, columns, dst + c * TR_TILE + r,
                                 TR_TILE);
        }
    }
}

#endif
