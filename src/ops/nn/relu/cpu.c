#include "backend/cpu/isa.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/real.h"
#include "backend/cpu/simd_map.h"
#include "ops/nn/relu/relu.h"
#include "ops/operand.h"

extern const tr_kernel TR_ISA_NAME(tr__relu_kernel);
extern const tr_kernel TR_ISA_NAME(tr__relu_backward_kernel);

static tr_vf relu(tr_vf x, tr_vf same) {
    (void)same;
    return tr_v_relu(x);
}

static void launch_relu(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const tr_real *x = launch->in[0]; // [count]
    tr_real *y = launch->out[0];      // [count]
    int64_t count = tr_shape_count(desc->in[0].shape);
    int threads = tr__threads_for(count, 1, desc->target.workers);
    bool add = launch->accumulate & 1;
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        tr_range r = tr__range_part(count, TR_VW, t, threads);
        const tr_real *from = x + r.begin;
        tr_v_map2(relu, from, from, y + r.begin, r.end - r.begin, add);
    }
}

static void launch_relu_backward(const tr_op_desc *desc, void *state,
                                 const tr_launch *launch) {
    (void)state;
    const tr_real *dy = launch->in[0], *y = launch->in[1]; // [count]
    tr_real *dx = launch->out[0];                          // [count]
    int64_t count = tr_shape_count(desc->in[0].shape);
    int threads = tr__threads_for(count, 1, desc->target.workers);
    bool add = launch->accumulate & 1;
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        tr_range r = tr__range_part(count, TR_VW, t, threads);
        tr_v_map2(tr_v_behind_relu, dy + r.begin, y + r.begin, dx + r.begin,
                  r.end - r.begin, add);
    }
}

static bool supports(const tr_op_desc *desc) {
    return tr__desc_real(desc, TR_REAL, 0, 0);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 1, out);
}

const tr_kernel TR_ISA_NAME(tr__relu_kernel) = {
    .name = "relu.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = cost,
    .launch = launch_relu,
};

const tr_kernel TR_ISA_NAME(tr__relu_backward_kernel) = {
    .name = "relu_backward.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = cost,
    .launch = launch_relu_backward,
};
