// The inner loop of a matrix product, for kernel files: TR_TILE_ROWS rows of C by up to
// TR_TILE_VECTORS vectors of columns, whose sums stay in registers.
#ifndef TR_BACKEND_CPU_GEMM_TILE_H
#define TR_BACKEND_CPU_GEMM_TILE_H

#include "backend/cpu/pair.h"
#include "backend/cpu/simd_half.h"

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
    TR_TILE_AHEAD = 12, // rows: so early B is asked of memory,
    TR_TILE_SOON = 8,   // and of the second cache once it is packed
};

// An element of A or B: tr_pair has one, or two that follow each other along k.
#if defined(TR_PAIRS)
typedef uint16_t tr_number;
#else
typedef float tr_number;
#endif
// One in an operand, whose address is a multiple of a number's size.
typedef tr_pair tr_operand_pair __attribute__((aligned(sizeof(tr_number))));

// One step of a vector of columns, each a tr_pair: the numbers of a pair are `row`
// apart.
static inline tr_vc tr__pairs_of_rows(const tr_number *from, int64_t row) {
#if defined(TR_PAIRS)
    tr_vu low = __builtin_convertvector(tr_v_load_h(from), tr_vu);
    tr_vu high = __builtin_convertvector(tr_v_load_h(from + row), tr_vu);
    return low | high << 16;
#else
    (void)row;
    return tr_v_load_c(from);
#endif
}

// How the inner loop finds A.
typedef enum tr_tile_a {
    TR_TILE_A_PACKED,
    TR_TILE_A_ROWS,  // in place: rows that are each adjacent along k
    TR_TILE_A_STEPS, // in place: steps that are each adjacent along the rows
    TR_TILE_A_COUNT,
} tr_tile_a;

typedef struct tr_tile {
    int64_t steps;    // pairs along k
    const tr_pair *a; // [steps, TR_TILE_ROWS], or the operand A itself
    tr_tile_a from_a; // which of them
    int64_t a_apart;  // of the operand: pairs from one row, or one step, to the next
    const tr_number *from; // the operand B, rows `from_row` apart; NULL: packed before
    int64_t from_row;
    tr_pair *b; // [steps, columns of the tile]; written where `from` is read
    float *c;   // rows `c_row` apart
    int64_t c_row;
    bool add;          // += instead of =
    const float *bias; // of the columns; NULL: none
    bool relu;
} tr_tile;

// Asks for what is read soon.
static inline __attribute__((always_inline)) void tr__tile_ask(const void *from,
                                                               const int bytes) {
    for (int i = 0; i < bytes; i += 64) {
        __builtin_prefetch((const char *)from + i);
    }
}

// sums[i][j] += a[i] b[j]
static inline __attribute__((always_inline)) void
tr__tile_step(const tr_operand_pair *a, int64_t a_row, const tr_vc *b,
              const int vectors, tr_vf sums[TR_TILE_ROWS][TR_TILE_VECTORS]) {
    for (int i = 0; i < TR_TILE_ROWS; i++) {
        tr_vc x = tr_v_set_c(a[i * a_row]);
        for (int j = 0; j < vectors; j++) {
            sums[i][j] = tr_v_add_c(sums[i][j], x, b[j]);
        }
    }
}

// One step's row of B, from the operand or packed before.
static inline __attribute__((always_inline)) void
tr__tile_row(const tr_tile *t, int64_t step, const int vectors, const bool first,
             tr_vc *row) {
    tr_pair *b = t->b + step * vectors * TR_VW;
    if (!first) {
        tr__tile_ask(b + TR_TILE_SOON * vectors * TR_VW,
                     vectors * TR_VW * (int)sizeof *b);
        for (int j = 0; j < vectors; j++) {
            row[j] = tr_v_load_c(b + j * TR_VW);
        }
        return;
    }
    const tr_number *from = t->from + step * TR_PAIR_STEPS * t->from_row;
    for (int i = 0; i < TR_PAIR_STEPS; i++) {
        tr__tile_ask(from + (TR_TILE_AHEAD + i) * t->from_row,
                     vectors * TR_VW * (int)sizeof *from);
    }
    for (int j = 0; j < vectors; j++) {
        row[j] = tr__pairs_of_rows(from + j * TR_VW, t->from_row);
        tr_v_store_c(b + j * TR_VW, row[j]);
    }
}

static inline __attribute__((always_inline)) void
tr__tile_store(const tr_tile *t, const int vectors,
               tr_vf sums[TR_TILE_ROWS][TR_TILE_VECTORS]) {
    const tr_vf zero = tr_v_set(0);
    for (int j = 0; j < vectors; j++) {
        tr_vf bias = t->bias ? tr_v_load(t->bias + j * TR_VW) : zero;
        for (int i = 0; i < TR_TILE_ROWS; i++) {
            float *c = t->c + i * t->c_row + j * TR_VW;
            tr_vf sum = t->add ? tr_v_load(c) + sums[i][j] : sums[i][j];
            sum = t->bias ? sum + bias : sum;
            tr_v_store(c, t->relu ? tr_v_relu(sum) : sum);
        }
    }
}

// Asks for what the next panel reads: of rows in place one at each step.
static inline __attribute__((always_inline)) void
tr__tile_ask_a(const tr_tile *t, const tr_operand_pair *a, int64_t step,
               const tr_tile_a from) {
    int64_t ahead = from == TR_TILE_A_PACKED ? t->steps * TR_TILE_ROWS
                    : from == TR_TILE_A_STEPS
                        ? TR_TILE_AHEAD * t->a_apart
                        : (TR_TILE_ROWS + step % TR_TILE_ROWS) * t->a_apart;
    __builtin_prefetch(a + ahead, 0, 2);
}

// first: the first one to read these columns of B
static inline __attribute__((always_inline)) void tr__tile_run(const tr_tile *t,
                                                               const int vectors,
                                                               const bool first,
                                                               const tr_tile_a from) {
    const int64_t a_row = from == TR_TILE_A_ROWS ? t->a_apart : 1;
    const int64_t a_step = from == TR_TILE_A_PACKED  ? TR_TILE_ROWS
                           : from == TR_TILE_A_STEPS ? t->a_apart
                                                     : 1;
    const tr_operand_pair *a = t->a;
    tr_vf sums[TR_TILE_ROWS][TR_TILE_VECTORS];
    for (int i = 0; i < TR_TILE_ROWS; i++) {
        tr__tile_ask(t->c + i * t->c_row, vectors * TR_VW * (int)sizeof(float));
        for (int j = 0; j < vectors; j++) {
            sums[i][j] = tr_v_set(0);
        }
    }
    for (int64_t s = 0; s < t->steps; s++, a += a_step) {
        tr_vc row[TR_TILE_VECTORS];
        tr__tile_ask_a(t, a, s, from);
        tr__tile_row(t, s, vectors, first, row);
        tr__tile_step(a, a_row, row, vectors, sums);
    }
    tr__tile_store(t, vectors, sums);
}

// Each in a function of its own, so that the compiler gives all registers to one loop.
static __attribute__((noinline)) void tr__tile_packed_1(const tr_tile *t) {
    tr__tile_run(t, 1, false, TR_TILE_A_PACKED);
}
static __attribute__((noinline)) void tr__tile_packed_2(const tr_tile *t) {
    tr__tile_run(t, 2, false, TR_TILE_A_PACKED);
}
static __attribute__((noinline)) void tr__tile_packed_3(const tr_tile *t) {
    tr__tile_run(t, 3, false, TR_TILE_A_PACKED);
}
static __attribute__((noinline)) void tr__tile_rows_1(const tr_tile *t) {
    tr__tile_run(t, 1, false, TR_TILE_A_ROWS);
}
static __attribute__((noinline)) void tr__tile_rows_2(const tr_tile *t) {
    tr__tile_run(t, 2, false, TR_TILE_A_ROWS);
}
static __attribute__((noinline)) void tr__tile_rows_3(const tr_tile *t) {
    tr__tile_run(t, 3, false, TR_TILE_A_ROWS);
}
static __attribute__((noinline)) void tr__tile_steps_1(const tr_tile *t) {
    tr__tile_run(t, 1, false, TR_TILE_A_STEPS);
}
static __attribute__((noinline)) void tr__tile_steps_2(const tr_tile *t) {
    tr__tile_run(t, 2, false, TR_TILE_A_STEPS);
}
static __attribute__((noinline)) void tr__tile_steps_3(const tr_tile *t) {
    tr__tile_run(t, 3, false, TR_TILE_A_STEPS);
}
static __attribute__((noinline)) void tr__tile_first_packed_1(const tr_tile *t) {
    tr__tile_run(t, 1, true, TR_TILE_A_PACKED);
}
static __attribute__((noinline)) void tr__tile_first_packed_2(const tr_tile *t) {
    tr__tile_run(t, 2, true, TR_TILE_A_PACKED);
}
static __attribute__((noinline)) void tr__tile_first_packed_3(const tr_tile *t) {
    tr__tile_run(t, 3, true, TR_TILE_A_PACKED);
}
static __attribute__((noinline)) void tr__tile_first_rows_1(const tr_tile *t) {
    tr__tile_run(t, 1, true, TR_TILE_A_ROWS);
}
static __attribute__((noinline)) void tr__tile_first_rows_2(const tr_tile *t) {
    tr__tile_run(t, 2, true, TR_TILE_A_ROWS);
}
static __attribute__((noinline)) void tr__tile_first_rows_3(const tr_tile *t) {
    tr__tile_run(t, 3, true, TR_TILE_A_ROWS);
}
static __attribute__((noinline)) void tr__tile_first_steps_1(const tr_tile *t) {
    tr__tile_run(t, 1, true, TR_TILE_A_STEPS);
}
static __attribute__((noinline)) void tr__tile_first_steps_2(const tr_tile *t) {
    tr__tile_run(t, 2, true, TR_TILE_A_STEPS);
}
static __attribute__((noinline)) void tr__tile_first_steps_3(const tr_tile *t) {
    tr__tile_run(t, 3, true, TR_TILE_A_STEPS);
}

static inline void tr__tile(const tr_tile *t, int vectors) {
    static void (*const tiles[2][TR_TILE_A_COUNT][TR_TILE_VECTORS])(const tr_tile *) = {
        {{tr__tile_packed_1, tr__tile_packed_2, tr__tile_packed_3},
         {tr__tile_rows_1, tr__tile_rows_2, tr__tile_rows_3},
         {tr__tile_steps_1, tr__tile_steps_2, tr__tile_steps_3}},
        {{tr__tile_first_packed_1, tr__tile_first_packed_2, tr__tile_first_packed_3},
         {tr__tile_first_rows_1, tr__tile_first_rows_2, tr__tile_first_rows_3},
         {tr__tile_first_steps_1, tr__tile_first_steps_2, tr__tile_first_steps_3}},
    };
    tiles[t->from != NULL][t->from_a][vectors - 1](t);
}

#endif
