#include "backend/cpu/isa.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/real.h"
#include "backend/cpu/simd_map.h"
#include "ops/nn/multiply/multiply.h"
#include "ops/operand.h"

extern const tr_kernel TR_ISA_NAME(tr__multiply_kernel);

static tr_vf product(tr_vf a, tr_vf b) {
    return a * b;
}

static void launch(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const tr_real *a = launch->in[0], *b = launch->in[1]; // [count]
    tr_real *y = launch->out[0];                          // [count]
    int64_t count = tr_shape_count(desc->in[0].shape);
    int threads = tr__threads_for(count, 1, desc->target.workers);
    bool add = launch->accumulate & 1;
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        tr_range r = tr__range_part(count, TR_VW, t, threads);
        tr_v_map2(product, a + r.begin, b + r.begin, y + r.begin, r.end - r.begin, add);
    }
}

static bool supports(const tr_op_desc *desc) {
    return tr__desc_real(desc, TR_REAL, 0, 0);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 1, out);
}

const tr_kernel TR_ISA_NAME(tr__multiply_kernel) = {
    .name = "multiply.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = cost,
    .launch = launch,
};
