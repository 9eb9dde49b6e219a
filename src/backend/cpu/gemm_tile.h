// The inner loop of a matrix product, for kernel files: TR_TILE_ROWS rows of C by up to
// TR_TILE_VECTORS vectors of columns, whose sums stay in registers.
#ifndef TR_BACKEND_CPU_GEMM_TILE_H
#define TR_BACKEND_CPU_GEMM_TILE_H

#include "backend/cpu/simd.h"

#include <stdbool.h>

// The sums, one row of B and one element of A fill the registers: 32 or 16.
#if defined(__AVX512F__) || defined(__aarch64__)
enum { TR_TILE_ROWS = 8 };
#elif defined(__AVX2__)
enum { TR_TILE_ROWS = 4 };
#else
enum { TR_TILE_ROWS = 2 }; // here a product needs a register of its own
#endif
enum {
    TR_TILE_VECTORS = 3,
    TR_TILE_COLUMNS = TR_TILE_VECTORS * TR_VW,
    TR_TILE_AHEAD = 12, // rows of B that are asked of memory before they are used
};

typedef struct tr_tile {
    int64_t steps;
    const float *a; // [steps, TR_TILE_ROWS]
    const float *b; // [steps, columns of the tile], rows `b_row` apart
    int64_t b_row;
    float *keep; // b's rows, adjacent, are written here as they are read; or NULL
    float *c;    // rows `c_row` apart
    int64_t c_row;
    bool add; // += instead of =
} tr_tile;

static inline __attribute__((always_inline)) void
tr__tile_ask(const float *from, int64_t row, const int rows, const int vectors) {
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < vectors * TR_VW; j += 16) {
            __builtin_prefetch(from + i * row + j);
        }
    }
}

// sums[i][j] += a[i] b[j]
static inline __attribute__((always_inline)) void
tr__tile_step(const float *a, const tr_vf *b, const int vectors,
              tr_vf sums[TR_TILE_ROWS][TR_TILE_VECTORS]) {
    for (int i = 0; i < TR_TILE_ROWS; i++) {
        tr_vf x = tr_v_set(a[i]);
        for (int j = 0; j < vectors; j++) {
            sums[i][j] += x * b[j];
        }
    }
}

static inline __attribute__((always_inline)) void
tr__tile_store(const tr_tile *t, const int vectors,
               tr_vf sums[TR_TILE_ROWS][TR_TILE_VECTORS]) {
    for (int i = 0; i < TR_TILE_ROWS; i++) {
        for (int j = 0; j < vectors; j++) {
            float *c = t->c + i * t->c_row + j * TR_VW;
            tr_v_store(c, t->add ? tr_v_load(c) + sums[i][j] : sums[i][j]);
        }
    }
}

static inline __attribute__((always_inline)) void
tr__tile_run(const tr_tile *t, const int vectors, const bool keep) {
    const float *a = t->a, *b = t->b;
    int64_t b_row = keep ? t->b_row : vectors * TR_VW;
    float *kept = t->keep;
    tr_vf sums[TR_TILE_ROWS][TR_TILE_VECTORS];
    tr__tile_ask(t->c, t->c_row, TR_TILE_ROWS, vectors);
    for (int i = 0; i < TR_TILE_ROWS; i++) {
        for (int j = 0; j < vectors; j++) {
            sums[i][j] = tr_v_set(0);
        }
    }
    for (int64_t p = 0; p < t->steps; p++, a += TR_TILE_ROWS, b += b_row) {
        tr_vf row[TR_TILE_VECTORS];
        for (int j = 0; j < vectors; j++) {
            row[j] = tr_v_load(b + j * TR_VW);
        }
        if (keep) {
            tr__tile_ask(b + TR_TILE_AHEAD * b_row, 0, 1, vectors);
            for (int j = 0; j < vectors; j++) {
                tr_v_store(kept + j * TR_VW, row[j]);
            }
            kept += vectors * TR_VW;
        }
        tr__tile_step(a, row, vectors, sums);
    }
    tr__tile_store(t, vectors, sums);
}

// Each in a function of its own, so that the compiler gives all registers to one loop.
static __attribute__((noinline)) void tr__tile_narrow(const tr_tile *t) {
    tr__tile_run(t, 1, false);
}

static __attribute__((noinline)) void tr__tile_middle(const tr_tile *t) {
    tr__tile_run(t, 2, false);
}

static __attribute__((noinline)) void tr__tile_wide(const tr_tile *t) {
    tr__tile_run(t, TR_TILE_VECTORS, false);
}

// The first one to read these columns of B.
static __attribute__((noinline)) void tr__tile_first(const tr_tile *t) {
    tr__tile_run(t, TR_TILE_VECTORS, true);
}

static inline void tr__tile(const tr_tile *t, int vectors) {
    if (t->keep) {
        tr__tile_first(t);
    } else if (vectors == TR_TILE_VECTORS) {
        tr__tile_wide(t);
    } else if (vectors == 2) {
        tr__tile_middle(t);
    } else {
        tr__tile_narrow(t);
    }
}

#endif
