#include "backend/cpu/isa.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/real.h"
#include "backend/cpu/simd_map.h"
#include "ops/nn/transpose/sizes.h"
#include "ops/operand.h"

#include <string.h>

extern const tr_kernel TR_ISA_NAME(tr__transpose_kernel);

// An element that moves alone costs as much as this many that move in rows.
enum { ALONE_WEIGHT = 4, BLOCK = 16 };

// to[i] = from[i], or += with `add`. Each [count].
static void move(const tr_real *from, tr_real *to, int64_t count, bool add) {
    if (add) {
        tr_v_map2(tr_v_first, from, from, to, count, true);
    } else {
        memcpy(to, from, (size_t)count * sizeof *to);
    }
}

// Rows of `inner` elements: columns [first, end) of a matrix x [rows, columns, inner].
static void in_rows(const tr_real *x, tr_real *y, const tr_transpose_sizes *a,
                    tr_range part, bool add) {
    int64_t inner = a->inner, rows = a->rows, columns = a->columns;
    for (int64_t column = part.begin; column < part.end; column++) {
        for (int64_t row = 0; row < rows; row++) {
            move(x + (row * columns + column) * inner,
                 y + (column * rows + row) * inner, inner, add);
        }
    }
}

static void put(tr_real *to, tr_real value, bool add) {
    *to = add ? tr_r_of(tr_r_get(*to) + tr_r_get(value)) : value;
}

// Single elements, in blocks whose rows and columns both stay in the cache.
static void in_blocks(const tr_real *x, tr_real *y, const tr_transpose_sizes *a,
                      tr_range part, bool add) {
    int64_t rows = a->rows, columns = a->columns;
    for (int64_t row = 0; row < rows; row += BLOCK) {
        int64_t end = row + BLOCK < rows ? row + BLOCK : rows;
        for (int64_t column = part.begin; column < part.end; column++) {
            for (int64_t r = row; r < end; r++) {
                put(y + column * rows + r, x[r * columns + column], add);
            }
        }
    }
}

static void launch(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const tr_real *x = launch->in[0]; // [matrices, rows, columns, inner]
    tr_real *y = launch->out[0];      // [matrices, columns, rows, inner]
    tr_transpose_sizes a = tr__transpose_sizes(desc);
    int64_t count = tr_shape_count(desc->in[0].shape);
    int64_t size = a.rows * a.columns * a.inner;
    int64_t parts = (a.columns + BLOCK - 1) / BLOCK, jobs = a.matrices * parts;
    int weight = a.inner > 1 ? 1 : ALONE_WEIGHT;
    int threads = tr__threads_for(count, weight, desc->target.workers);
    bool add = launch->accumulate & 1;
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t job = 0; job < jobs; job++) {
        int64_t at = job / parts * size, first = job % parts * BLOCK;
        int64_t end = first + BLOCK < a.columns ? first + BLOCK : a.columns;
        (a.inner > 1 ? in_rows : in_blocks)(x + at, y + at, &a, (tr_range){first, end},
                                            add);
    }
}

static bool supports(const tr_op_desc *desc) {
    return tr__desc_real(desc, TR_REAL, 0, 0);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 0, out);
}

const tr_kernel TR_ISA_NAME(tr__transpose_kernel) = {
    .name = "transpose.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = cost,
    .launch = launch,
};
