#include "backend/cpu/isa.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/real.h"
#include "backend/cpu/simd_map.h"
#include "ops/nn/bias/bias.h"
#include "ops/operand.h"

extern const tr_kernel TR_ISA_NAME(tr__bias_kernel);

static tr_vf sum(tr_vf x, tr_vf b) {
    return x + b;
}

static void launch(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const tr_real *x = launch->in[0], *b = launch->in[1]; // [rows, width], [width]
    tr_real *y = launch->out[0];                          // [rows, width]
    int64_t width = tr__shape_width(desc->in[0].shape);
    int64_t rows = tr_shape_count(desc->in[0].shape) / width;
    int threads = tr__threads_for(rows * width, 1, desc->target.workers);
    bool add = launch->accumulate & 1;
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t r = 0; r < rows; r++) {
        tr_v_map2(sum, x + r * width, b, y + r * width, width, add);
    }
}

static bool supports(const tr_op_desc *desc) {
    return tr__desc_real(desc, TR_REAL, 0, 0);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 1, out);
}

const tr_kernel TR_ISA_NAME(tr__bias_kernel) = {
    .name = "bias.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = cost,
    .launch = launch,
};
