#include "backend/cpu/isa.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/real.h"
#include "backend/cpu/simd_map.h"
#include "backend/cpu/simd_math.h"
#include "ops/nn/silu/silu.h"
#include "ops/operand.h"

extern const tr_kernel TR_ISA_NAME(tr__silu_kernel);
extern const tr_kernel TR_ISA_NAME(tr__silu_backward_kernel);

// An element costs about as much as this many moved ones.
enum { SILU_WEIGHT = 4 };

static tr_vf value(tr_vf x, tr_vf same) {
    (void)same;
    return x * tr_v_sigmoid(x);
}

static tr_vf slope(tr_vf dy, tr_vf x) {
    tr_vf s = tr_v_sigmoid(x);
    return dy * (s + x * s * (1 - s));
}

static void launch_silu(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const tr_real *x = launch->in[0]; // [count]
    tr_real *y = launch->out[0];      // [count]
    int64_t count = tr_shape_count(desc->in[0].shape);
    int threads = tr__threads_for(count, SILU_WEIGHT, desc->target.workers);
    bool add = launch->accumulate & 1;
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        tr_range r = tr__range_part(count, TR_VW, t, threads);
        const tr_real *from = x + r.begin;
        tr_v_map2(value, from, from, y + r.begin, r.end - r.begin, add);
    }
}

static void launch_silu_backward(const tr_op_desc *desc, void *state,
                                 const tr_launch *launch) {
    (void)state;
    const tr_real *dy = launch->in[0], *x = launch->in[1]; // [count]
    tr_real *dx = launch->out[0];                          // [count]
    int64_t count = tr_shape_count(desc->in[0].shape);
    int threads = tr__threads_for(count, SILU_WEIGHT, desc->target.workers);
    bool add = launch->accumulate & 1;
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        tr_range r = tr__range_part(count, TR_VW, t, threads);
        tr_v_map2(slope, dy + r.begin, x + r.begin, dx + r.begin, r.end - r.begin, add);
    }
}

static bool supports(const tr_op_desc *desc) {
    return tr__desc_real(desc, TR_REAL, 0, 0);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 10, out);
}

const tr_kernel TR_ISA_NAME(tr__silu_kernel) = {
    .name = "silu.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = cost,
    .launch = launch_silu,
};

const tr_kernel TR_ISA_NAME(tr__silu_backward_kernel) = {
    .name = "silu_backward.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = cost,
    .launch = launch_silu_backward,
};
