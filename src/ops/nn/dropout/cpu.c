#include "backend/cpu/isa.h"
#include "backend/cpu/real.h"
#include "ops/nn/dropout/cpu_mask.h"
#include "ops/operand.h"

extern const tr_kernel TR_ISA_NAME(tr__dropout_kernel);

static void launch_dropout(const tr_op_desc *desc, void *state,
                           const tr_launch *launch) {
    (void)state;
    tr__mask_launch(desc, launch, NULL, launch->in[0]);
}

static bool supports(const tr_op_desc *desc) {
    return tr__desc_real(desc, TR_REAL, 0, 0);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 10, out);
}

const tr_kernel TR_ISA_NAME(tr__dropout_kernel) = {
    .name = "dropout.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = cost,
    .launch = launch_dropout,
};
