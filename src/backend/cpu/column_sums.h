// Sums over the rows of a matrix, for kernel files: the gradient of a bias.
//
// The rows are cut into blocks by their number alone; each block's sums are a partial,
// and the partials are added in their order. So the bits do not depend on threads.
#ifndef TR_BACKEND_CPU_COLUMN_SUMS_H
#define TR_BACKEND_CPU_COLUMN_SUMS_H

#include "backend/cpu/parallel.h"
#include "backend/cpu/simd.h"

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

// sums: [columns], (+)= row 0 .. row 3 of a: [.., columns]
static inline void tr__column_add4(const float *a, int64_t columns, bool add,
                                   float *sums) {
    const float *b = a + columns, *c = b + columns, *d = c + columns;
    int64_t i = 0;
    for (; i + TR_VW <= columns; i += TR_VW) {
        tr_vf sum = (tr_v_load(a + i) + tr_v_load(b + i)) +
                    (tr_v_load(c + i) + tr_v_load(d + i));
        tr_v_store(sums + i, add ? tr_v_load(sums + i) + sum : sum);
    }
    for (; i < columns; i++) {
        float sum = (a[i] + b[i]) + (c[i] + d[i]);
        sums[i] = add ? sums[i] + sum : sum;
    }
}

// sums: [columns], = or += the row a: [columns]
static inline void tr__column_add1(const float *a, int64_t columns, bool add,
                                   float *sums) {
    for (int64_t i = 0; i < columns; i++) {
        sums[i] = add ? sums[i] + a[i] : a[i];
    }
}

// a: [rows, columns] -> sums: [columns]
static inline void tr__column_block(const float *a, int64_t rows, int64_t columns,
                                    float *sums) {
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4) {
        tr__column_add4(a + r * columns, columns, r > 0, sums);
    }
    for (; r < rows; r++) {
        tr__column_add1(a + r * columns, columns, r > 0, sums);
    }
}

// a: [rows, columns], partials: tr__column_sums_workspace bytes, out: [columns], = or
// += the sums.
static inline void tr__column_sums(const float *a, int64_t rows, int64_t columns,
                                   int threads, bool accumulate, float *partials,
                                   float *out) {
    int64_t block = tr__column_block_rows(rows), blocks = tr__column_blocks(rows);
    int workers = tr__threads_for(rows * columns, 1, threads);
#pragma omp parallel for num_threads(workers) schedule(static) if (workers > 1)
    for (int64_t b = 0; b < blocks; b++) {
        int64_t first = b * block;
        int64_t count = rows - first < block ? rows - first : block;
        tr__column_block(a + first * columns, count, columns, partials + b * columns);
    }
    workers = tr__threads_for(blocks * columns, 1, threads);
#pragma omp parallel for num_threads(workers) schedule(static) if (workers > 1)
    for (int t = 0; t < workers; t++) {
        tr_range part = tr__range_part(columns, TR_VW, t, workers);
        for (int64_t b = 0; b < blocks; b++) {
            tr__column_add1(partials + b * columns + part.begin, part.end - part.begin,
                            accumulate || b > 0, out + part.begin);
        }
    }
}

#endif
