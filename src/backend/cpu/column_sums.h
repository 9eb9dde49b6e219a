// Sums over the rows of a matrix, for kernel files: the gradient of a bias.
//
// The rows are cut into blocks by their number alone; each block's sums are a partial,
// and the partials are added in their order. So the bits do not depend on threads.
#ifndef TR_BACKEND_CPU_COLUMN_SUMS_H
#define TR_BACKEND_CPU_COLUMN_SUMS_H

#include "backend/cpu/parallel.h"
#include "backend/cpu/real.h"

#include <stdbool.h>
#include <stddef.h>

// At most 64 blocks, of 64 rows or more.
static inline int64_t tr__column_block_rows(int64_t rows) {
    int64_t share = (rows + 63) / 64;
    return share > 64 ? share : 64;
}

static inline int64_t tr__column_blocks(int64_t rows) {
    int64_t block = tr__column_block_rows(rows);
    return (rows + block - 1) / block;
}

static inline size_t tr__column_sums_workspace(int64_t rows, int64_t columns) {
    return (size_t)tr__column_blocks(rows) * (size_t)columns * sizeof(float);
}

// sums: [columns], (+)= row 0 .. row 3 of a: [.., columns], rows `pitch` apart
static inline void tr__column_add4(const tr_real *a, int64_t pitch, int64_t columns,
                                   bool add, float *sums) {
    const tr_real *b = a + pitch, *c = b + pitch, *d = c + pitch;
    int64_t i = 0;
    for (; i + TR_VW <= columns; i += TR_VW) {
        tr_vf sum = (tr_v_load_r(a + i) + tr_v_load_r(b + i)) +
                    (tr_v_load_r(c + i) + tr_v_load_r(d + i));
        tr_v_store(sums + i, add ? tr_v_load(sums + i) + sum : sum);
    }
    for (; i < columns; i++) {
        float sum =
            (tr_r_get(a[i]) + tr_r_get(b[i])) + (tr_r_get(c[i]) + tr_r_get(d[i]));
        sums[i] = add ? sums[i] + sum : sum;
    }
}

// sums: [columns], = or += the row a: [columns]
static inline void tr__column_add1(const tr_real *a, int64_t columns, bool add,
                                   float *sums) {
    for (int64_t i = 0; i < columns; i++) {
        sums[i] = add ? sums[i] + tr_r_get(a[i]) : tr_r_get(a[i]);
    }
}

// The same of a row of sums.
static inline void tr__column_add_sums(const float *from, int64_t columns, bool add,
                                       float *sums) {
    for (int64_t i = 0; i < columns; i++) {
        sums[i] = add ? sums[i] + from[i] : from[i];
    }
}

// a: [rows, columns], rows `pitch` apart -> sums: [columns]
static inline void tr__column_block(const tr_real *a, int64_t pitch, int64_t rows,
                                    int64_t columns, float *sums) {
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4) {
        tr__column_add4(a + r * pitch, pitch, columns, r > 0, sums);
    }
    for (; r < rows; r++) {
        tr__column_add1(a + r * pitch, columns, r > 0, sums);
    }
}

// a: [rows, columns], rows `pitch` apart; partials: tr__column_sums_workspace bytes;
// out: [columns], = or += the sums.
static inline void tr__column_sums(const tr_real *a, int64_t pitch, int64_t rows,
                                   int64_t columns, int threads, bool accumulate,
                                   float *partials, float *out) {
    int64_t block = tr__column_block_rows(rows), blocks = tr__column_blocks(rows);
    int workers = tr__threads_for(rows * columns, 1, threads);
#pragma omp parallel for num_threads(workers) schedule(static) if (workers > 1)
    for (int64_t b = 0; b < blocks; b++) {
        int64_t first = b * block;
        int64_t count = rows - first < block ? rows - first : block;
        tr__column_block(a + first * pitch, pitch, count, columns,
                         partials + b * columns);
    }
    workers = tr__threads_for(blocks * columns, 1, threads);
#pragma omp parallel for num_threads(workers) schedule(static) if (workers > 1)
    for (int t = 0; t < workers; t++) {
        tr_range part = tr__range_part(columns, TR_VW, t, workers);
        for (int64_t b = 0; b < blocks; b++) {
            tr__column_add_sums(partials + b * columns + part.begin,
                                part.end - part.begin, accumulate || b > 0,
                                out + part.begin);
        }
    }
}

#endif
