// y = act(x W + b) of an inference with few rows, where reading W is the work.
#include "backend/cpu/few_rows.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/real.h"
#include "ops/nn/linear/operands.h"
#include "ops/operand.h"

extern const tr_kernel TR_ISA_NAME(tr__linear_few_kernel);

static bool supports(const tr_op_desc *desc) {
    return desc->inference && tr__linear_output_dims(desc).rows <= TR_FEW_ROWS &&
           !(desc->accumulate & 1) && tr__desc_real(desc, TR_REAL, 0, 0);
}

static size_t workspace(const tr_op_desc *desc, const void *state) {
    tr_linear_dims d = tr__linear_output_dims(desc);
    (void)state;
    return tr__few_rows_floats(d.rows, d.in, d.out) * sizeof(float);
}

static void launch_few(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    tr_linear_dims d = tr__linear_output_dims(desc);
    (void)state;
    tr_few_rows product = {
        .rows = d.rows,
        .in = d.in,
        .out = d.out,
        .in_out = d.layout == TR_WEIGHT_IN_OUT,
        .x = launch->in[0],
        .w = launch->in[1],
        .bias = tr__linear_has_bias(desc) ? launch->in[2] : NULL,
        .relu = tr__linear_attr(desc).activation == TR_ACTIVATION_RELU,
        .y = launch->out[0],
        .space = launch->workspace,
    };
    tr__few_rows_run(product, desc->target.workers);
}

const tr_kernel TR_ISA_NAME(tr__linear_few_kernel) = {
    .name = "linear_few.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = tr__linear_output_cost,
    .workspace = workspace,
    .launch = launch_few,
};
