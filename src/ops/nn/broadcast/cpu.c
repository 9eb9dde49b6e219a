#include "backend/cpu/column_sums.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/real.h"
#include "backend/cpu/simd_map.h"
#include "ops/nn/broadcast/sizes.h"

extern const tr_kernel TR_ISA_NAME(tr__expand_kernel), TR_ISA_NAME(tr__sum_kernel),
    TR_ISA_NAME(tr__repeat_kernel), TR_ISA_NAME(tr__repeat_backward_kernel);

// So many terms are added to zero, and the sums of them to each other: what rounding
// takes grows with both numbers, and not with their product.
enum { SUM_BLOCK = 128 };

static void launch_repeat(const tr_op_desc *desc, void *state,
                          const tr_launch *launch) {
    (void)state;
    const tr_real *x = launch->in[0]; // [outer, inner]
    tr_real *y = launch->out[0];      // [outer, times, inner]
    tr_broadcast_sizes s = tr__broadcast_sizes(desc, false);
    int64_t rows = s.outer * s.times;
    int threads = tr__threads_for(rows * s.inner, 1, desc->target.workers);
    bool add = launch->accumulate & 1;
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t r = 0; r < rows; r++) {
        const tr_real *from = x + r / s.times * s.inner;
        for (int64_t i = 0; i < s.inner; i += TR_VW) {
            int left = tr_v_left(s.inner, i);
            tr_v_put_some_r(y + r * s.inner + i,
                            tr_v_load_some_r(from + i, left) * s.scale, left, add);
        }
    }
}

// The sum of `times` vectors of `left` elements, `pitch` apart.
static tr_vf sum_rows(const tr_real *x, int64_t times, int64_t pitch, int left) {
    tr_vf total = tr_v_set(0);
    for (int64_t n = 0; n < times; n += SUM_BLOCK) {
        tr_vf part = tr_v_set(0);
        int64_t end = n + SUM_BLOCK < times ? n + SUM_BLOCK : times;
        for (int64_t k = n; k < end; k++) {
            part += tr_v_load_some_r(x + k * pitch, left);
        }
        total += part;
    }
    return total;
}

// The sum of `count` elements side by side.
static float sum_row(const tr_real *x, int64_t count) {
    int64_t whole = count / TR_VW;
    float total = tr_v_sum(sum_rows(x, whole, TR_VW, TR_VW));
    for (int64_t i = whole * TR_VW; i < count; i++) {
        total += tr_r_get(x[i]);
    }
    return total;
}

static void launch_sum(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const tr_real *x = launch->in[0]; // [outer, times, inner]
    tr_real *y = launch->out[0];      // [outer, inner]
    tr_broadcast_sizes s = tr__broadcast_sizes(desc, true);
    int64_t size = s.times * s.inner;
    int threads = tr__threads_for(s.outer * size, 1, desc->target.workers);
    bool add = launch->accumulate & 1;
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t o = 0; o < s.outer; o++) {
        const tr_real *from = x + o * size;
        for (int64_t i = 0; i < s.inner; i += TR_VW) {
            int left = tr_v_left(s.inner, i);
            tr_vf sum = s.inner == 1 ? tr_v_set(sum_row(from, s.times))
                                     : sum_rows(from + i, s.times, s.inner, left);
            tr_v_put_some_r(y + o * s.inner + i, sum * s.scale, left, add);
        }
    }
}

static size_t sums_workspace(const tr_op_desc *desc, const void *state) {
    (void)state;
    tr_broadcast_sizes s = tr__broadcast_sizes(desc, true);
    return tr__column_sums_workspace(s.times, s.inner);
}

static void launch_repeat_backward(const tr_op_desc *desc, void *state,
                                   const tr_launch *launch) {
    (void)state;
    tr_broadcast_sizes s = tr__broadcast_sizes(desc, true);
    tr__column_sums(launch->in[0], s.inner, s.times, s.inner, desc->target.workers,
                    launch->accumulate & 1, launch->workspace, launch->out[0]);
}

static bool supports(const tr_op_desc *desc) {
    return tr__desc_real(desc, TR_REAL, 0, 0);
}

// Gradients of parameters are f32.
static bool supports_repeat_backward(const tr_op_desc *desc) {
    return tr__desc_real(desc, TR_REAL, 0, 1 << 0);
}

const tr_kernel TR_ISA_NAME(tr__expand_kernel) = {
    .name = "expand.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = tr__broadcast_cost,
    .launch = launch_repeat,
};

const tr_kernel TR_ISA_NAME(tr__sum_kernel) = {
    .name = "sum.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = tr__broadcast_cost,
    .launch = launch_sum,
};

const tr_kernel TR_ISA_NAME(tr__repeat_kernel) = {
    .name = "repeat.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = tr__broadcast_cost,
    .launch = launch_repeat,
};

const tr_kernel TR_ISA_NAME(tr__repeat_backward_kernel) = {
    .name = "repeat_backward.cpu." TR_ISA_TEXT,
    .supports = supports_repeat_backward,
    .cost = tr__broadcast_cost,
    .workspace = sums_workspace,
    .launch = launch_repeat_backward,
};
