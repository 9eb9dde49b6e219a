#include "backend/cpu/isa.h"
#include "backend/cpu/move.h"
#include "backend/cpu/real.h"
#include "ops/nn/token_parts/token_parts.h"
#include "ops/operand.h"

extern const tr_kernel TR_ISA_NAME(tr__token_parts_kernel);

static void launch_move(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_token_part part = tr__token_part(desc);
    const tr_real *x = launch->in[0];
    tr_real *y = launch->out[0];
    x += part.gathers ? 0 : part.first; // [count]
    y += part.gathers ? part.first : 0; // [count]
    tr__move(x, y, part.count, desc->target.workers, launch->accumulate & 1);
}

static bool supports(const tr_op_desc *desc) {
    return tr__desc_real(desc, TR_REAL, 0, 0);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    int64_t count = tr__token_part(desc).count;
    out->bytes = 2.0 * (double)count * sizeof(tr_real);
}

const tr_kernel TR_ISA_NAME(tr__token_parts_kernel) = {
    .name = "token_parts.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = cost,
    .launch = launch_move,
};
