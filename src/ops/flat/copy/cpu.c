#include "backend/cpu/isa.h"
#include "backend/cpu/move.h"
#include "backend/cpu/real.h"
#include "ops/flat/copy/copy.h"
#include "ops/operand.h"

extern const tr_kernel TR_ISA_NAME(tr__copy_kernel);

static void launch_copy(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr__move(launch->in[0], launch->out[0], tr_shape_count(desc->in[0].shape),
             desc->target.workers, launch->accumulate & 1);
}

static bool supports(const tr_op_desc *desc) {
    return tr__desc_real(desc, TR_REAL, 0, 0);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 0, out);
}

const tr_kernel TR_ISA_NAME(tr__copy_kernel) = {
    .name = "copy.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = cost,
    .launch = launch_copy,
};
