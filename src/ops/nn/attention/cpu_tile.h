// Products of small tiles that are in the cache, for attention's kernel files. The
// causal mask makes a tile on the diagonal half empty: a product leaves out what it
// can, by strips of rows. Both ways, nothing is left out: the diagonal is far away.
//
// All sizes and buffers are padded: rows to TR_STRIP, columns to TR_VW. Steps are
// counted in numbers by callers, and lie in memory as pairs.
#ifndef TR_OPS_NN_ATTENTION_CPU_TILE_H
#define TR_OPS_NN_ATTENTION_CPU_TILE_H

#include "backend/cpu/pair.h"
#include "base/checked.h"

#include <stdbool.h>

enum {
    TR_TILE = 64, // queries and keys of one tile
    TR_STRIP = 8, // rows that share their limits
};

// Accumulators, kept in registers: rows x vectors.
#if defined(__AVX512F__)
enum { TR_BLOCK_ROWS = 8, TR_BLOCK_VECTORS = 2 };
#else
enum { TR_BLOCK_ROWS = 4, TR_BLOCK_VECTORS = 2 };
#endif

// C = A B, or C += A B. Pair k of row i of A is a[i * a_row + k * a_step].
typedef struct tr_product {
    const tr_pair *a;
    int64_t a_row, a_step;
    const tr_pair *b; // [steps / TR_PAIR_STEPS, columns], rows b_row apart
    int64_t b_row;
    float *c; // [rows, columns], rows c_row apart
    int64_t c_row;
    bool add;
} tr_product;

// What of a product the causal mask lets out. Query r of a tile sees its keys below
// `diagonal` + r + 1; diagonal = first query - first key.
typedef enum tr_causal {
    TR_CAUSAL_SCORES,  // rows are queries, columns are keys
    TR_CAUSAL_QUERIES, // rows are queries, steps are keys
    TR_CAUSAL_KEYS,    // rows are keys, steps are queries
} tr_causal;

// `rows` and `vectors` are constants wherever this is inlined. p: of the block alone.
__attribute__((always_inline)) static inline void
tr_v_block(int rows, int vectors, int64_t pairs, tr_product p) {
    tr_vf sum[TR_BLOCK_ROWS][TR_BLOCK_VECTORS];
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) {
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) {
            sum[i][v] = tr_v_set(0);
        }
    }
    for (int64_t k = 0; k < pairs; k++) {
        tr_vc right[TR_BLOCK_VECTORS];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) {
            right[v] = tr_v_load_c(p.b + k * p.b_row + v * TR_VW);
        }
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++) {
            tr_vc left = tr_v_set_c(p.a[i * p.a_row + k * p.a_step]);
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++) {
                sum[i][v] = tr_v_add_c(sum[i][v], left, right[v]);
            }
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) {
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) {
            float *to = p.c + i * p.c_row + v * TR_VW;
            tr_v_store(to, p.add ? tr_v_load(to) + sum[i][v] : sum[i][v]);
        }
    }
}

// One strip of rows, `vectors` vectors of columns from column j, pairs from `begin` to
// `end`.
__attribute__((always_inline)) static inline void
tr_v_strip(int vectors, const tr_product *p, int64_t i, int64_t j, int64_t begin,
           int64_t end) {
    for (int64_t r = i; r < i + TR_STRIP; r += TR_BLOCK_ROWS) {
        tr_product block = *p;
        block.a += r * p->a_row + begin * p->a_step;
        block.b += begin * p->b_row + j;
        block.c += r * p->c_row + j;
        if (p->a_step == 1) {
            block.a_step = 1;
            tr_v_block(TR_BLOCK_ROWS, vectors, end - begin, block);
        } else {
            block.a_row = 1;
            tr_v_block(TR_BLOCK_ROWS, vectors, end - begin, block);
        }
    }
}

// rows: multiple of TR_STRIP; columns: multiple of TR_VW. Either a_step or a_row is 1.
// SCORES: columns past a strip's limit are left as they are.
static inline void tr_v_product(const tr_product *p, int64_t rows, int64_t columns,
                                int64_t steps, tr_causal causal, int64_t diagonal) {
    for (int64_t j = 0; j < columns; j += TR_BLOCK_VECTORS * TR_VW) {
        for (int64_t i = 0; i < rows; i += TR_STRIP) {
            int64_t begin = 0, end = steps, width = columns;
            if (causal == TR_CAUSAL_SCORES) {
                width = tr__min_i64(columns, diagonal + i + TR_STRIP);
            } else if (causal == TR_CAUSAL_QUERIES) {
                end = tr__min_i64(steps, diagonal + i + TR_STRIP);
            } else {
                begin = tr__max_i64(0, i - diagonal);
            }
            // Limits lie between pairs; the last one is filled up with zeros.
            begin /= TR_PAIR_STEPS;
            end = tr__ceil_div(end, TR_PAIR_STEPS);
            if (width - j > TR_VW) {
                tr_v_strip(TR_BLOCK_VECTORS, p, i, j, begin, end);
            } else if (width > j) {
                tr_v_strip(1, p, i, j, begin, end);
            }
        }
    }
}

#endif
