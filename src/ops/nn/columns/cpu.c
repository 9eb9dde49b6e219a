#include "backend/cpu/isa.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/real.h"
#include "backend/cpu/simd_map.h"
#include "ops/nn/columns/columns.h"
#include "ops/operand.h"

#include <string.h>

extern const tr_kernel TR_ISA_NAME(tr__add_columns_kernel);
extern const tr_kernel TR_ISA_NAME(tr__take_columns_kernel);
extern const tr_kernel TR_ISA_NAME(tr__put_columns_kernel);
extern const tr_kernel TR_ISA_NAME(tr__join_columns_kernel);

// out = a + scale * b, or += with `add`; a NULL: 0. Each [count]; `out` may be `a`.
static void scaled(const tr_real *a, const tr_real *b, float scale, tr_real *out,
                   int64_t count, bool add) {
    for (int64_t i = 0; i < count; i += TR_VW) {
        int left = tr_v_left(count, i);
        tr_vf value = tr_v_load_some_r(b + i, left) * scale;
        value = a ? tr_v_load_some_r(a + i, left) + value : value;
        tr_v_put_some_r(out + i, value, left, add);
    }
}

static void copy(const tr_real *from, tr_real *to, int64_t count, bool add) {
    if (add) {
        tr_v_map2(tr_v_first, from, from, to, count, true);
    } else if (to != from && count > 0) {
        memcpy(to, from, (size_t)count * sizeof *to);
    }
}

static void launch_add(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const tr_real *x = launch->in[0], *u = launch->in[1]; // [rows, W], [rows, count]
    tr_real *y = launch->out[0];                          // [rows, W], may be x
    tr_columns_attr attr;
    memcpy(&attr, desc->attr, sizeof attr);
    int64_t rows = tr__shape_rows(desc->in[0].shape);
    int64_t width = tr__shape_width(desc->in[0].shape);
    int64_t end = (int64_t)attr.first + attr.count;
    int threads = tr__threads_for(rows * width, 1, desc->target.workers);
    bool add = launch->accumulate & 1;
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t r = 0; r < rows; r++) {
        const tr_real *from = x + r * width;
        tr_real *to = y + r * width;
        copy(from, to, attr.first, add);
        scaled(from + attr.first, u + r * attr.count, attr.scale, to + attr.first,
               attr.count, add);
        copy(from + end, to + end, width - end, add);
    }
}

static void launch_take(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const tr_real *x = launch->in[0]; // [rows, W]
    tr_real *y = launch->out[0];      // [rows, count]
    tr_columns_attr attr;
    memcpy(&attr, desc->attr, sizeof attr);
    int64_t rows = tr__shape_rows(desc->in[0].shape);
    int64_t width = tr__shape_width(desc->in[0].shape);
    int threads = tr__threads_for(rows * attr.count, 1, desc->target.workers);
    bool add = launch->accumulate & 1;
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t r = 0; r < rows; r++) {
        scaled(NULL, x + r * width + attr.first, attr.scale, y + r * attr.count,
               attr.count, add);
    }
}

static void zeros(tr_real *to, int64_t count, bool add) {
    if (!add && count > 0) {
        memset(to, 0, (size_t)count * sizeof *to);
    }
}

static void launch_put(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const tr_real *x = launch->in[0]; // [rows, count]
    tr_real *y = launch->out[0];      // [rows, width]
    tr_columns_attr attr;
    memcpy(&attr, desc->attr, sizeof attr);
    int64_t rows = tr__shape_rows(desc->in[0].shape), width = attr.width;
    int64_t end = (int64_t)attr.first + attr.count;
    int threads = tr__threads_for(rows * width, 1, desc->target.workers);
    bool add = launch->accumulate & 1;
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t r = 0; r < rows; r++) {
        tr_real *to = y + r * width;
        zeros(to, attr.first, add);
        scaled(NULL, x + r * attr.count, attr.scale, to + attr.first, attr.count, add);
        zeros(to + end, width - end, add);
    }
}

static void launch_join(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_real *y = launch->out[0]; // [rows, width]
    int64_t rows = tr__shape_rows(desc->out[0].shape);
    int64_t width = tr__shape_width(desc->out[0].shape);
    int threads = tr__threads_for(rows * width, 1, desc->target.workers);
    bool add = launch->accumulate & 1;
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t r = 0; r < rows; r++) {
        tr_real *to = y + r * width;
        for (int i = 0; i < desc->in_count; i++) {
            const tr_real *x = launch->in[i]; // [rows, count]
            int64_t count = tr__shape_width(desc->in[i].shape);
            copy(x + r * count, to, count, add);
            to += count;
        }
    }
}

static bool supports(const tr_op_desc *desc) {
    return tr__desc_real(desc, TR_REAL, 0, 0);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 1, out);
}

const tr_kernel TR_ISA_NAME(tr__add_columns_kernel) = {
    .name = "add_columns.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = cost,
    .launch = launch_add,
};

const tr_kernel TR_ISA_NAME(tr__take_columns_kernel) = {
    .name = "take_columns.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = cost,
    .launch = launch_take,
};

const tr_kernel TR_ISA_NAME(tr__put_columns_kernel) = {
    .name = "put_columns.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = cost,
    .launch = launch_put,
};

const tr_kernel TR_ISA_NAME(tr__join_columns_kernel) = {
    .name = "join_columns.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = cost,
    .launch = launch_join,
};
