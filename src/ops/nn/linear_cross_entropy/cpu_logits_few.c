// Logits of few samples, where reading the weight is the work.
#include "backend/cpu/few_rows.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/real.h"
#include "ops/nn/linear_cross_entropy/cpu_gathered.h"
#include "ops/operand.h"

extern const tr_kernel TR_ISA_NAME(tr__lce_logits_few_kernel);

static bool supports(const tr_op_desc *desc) {
    return desc->inference && tr__gathered_dims(desc).rows <= TR_FEW_ROWS &&
           tr__lce_supports(desc, TR_REAL) && desc->out[0].dtype == TR_F32 &&
           !(desc->accumulate & 1);
}

static size_t workspace(const tr_op_desc *desc, const void *state) {
    tr_linear_dims d = tr__gathered_dims(desc);
    (void)state;
    return tr__gathered_bytes(desc) +
           tr__few_rows_floats(d.rows, d.in, d.out) * sizeof(float);
}

static void launch_few(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    tr_linear_dims d = tr__gathered_dims(desc);
    char *gathered = launch->workspace; // [B, C]
    (void)state;
    tr_few_rows product = {
        .rows = d.rows,
        .in = d.in,
        .out = d.out,
        .in_out = d.layout == TR_WEIGHT_IN_OUT,
        .x = launch->workspace,
        .w = launch->in[HEAD_WEIGHT],
        .bias = launch->in[HEAD_BIAS],
        .y_f32 = launch->out[0],
        .space = (float *)(gathered + tr__gathered_bytes(desc)),
    };
    if (tr__gathered_take(desc, launch, gathered) > 0) {
        tr__few_rows_run(product, desc->target.workers);
    }
    tr__gathered_clear(desc, launch, launch->out[0]);
}

const tr_kernel TR_ISA_NAME(tr__lce_logits_few_kernel) = {
    .name = "head_logits_few.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = tr__lce_logits_cost,
    .workspace = workspace,
    .launch = launch_few,
};
