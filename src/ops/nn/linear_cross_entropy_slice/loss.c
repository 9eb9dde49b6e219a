// What is left of the head after its last slice: a few additions for each row, so there
// is one kernel for all.
#include "ops/nn/linear_cross_entropy_slice/operands.h"

extern const tr_kernel tr__lce_slice_loss_kernel, tr__lce_slice_loss_backward_kernel;

static tr_status check_inputs(const tr_op_node *node, tr_error *err) {
    tr_status status = tr__operand_count(node, LOSS_INPUTS, LOSS_INPUTS, err);
    if (status == TR_OK) {
        status = tr__operand_dtype(node, LOSS_TARGETS, TR_I32, err);
    }
    if (status != TR_OK) {
        return status;
    }
    tr_shape rows = node->in[LOSS_TARGETS].shape;
    if (rows.rank == TR_RANK_MAX) {
        return tr_fail(err, TR_USAGE, "%s: targets have too many dimensions",
                       node->op->name);
    }
    rows.dim[rows.rank++] = RUNNING;
    status = tr__operand_shape(node, LOSS_RUNNING, TR_F64, rows, err);
    rows.dim[rows.rank - 1] = BEST;
    return status == TR_OK ? tr__operand_shape(node, LOSS_BEST, TR_F32, rows, err)
                           : status;
}

static tr_status loss_infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                            tr_error *err) {
    tr_status status = check_inputs(node, err);
    if (status == TR_OK) {
        out[0] = (tr_tensor_desc){TR_F64, TR_SHAPE1(TR_SUMS)};
        *out_count = 1;
    }
    return status;
}

static tr_status backward_infer(const tr_op_node *node, tr_tensor_desc *out,
                                int *out_count, tr_error *err) {
    tr_status status = check_inputs(node, err);
    if (status == TR_OK) {
        out[LOSS_DRUNNING] = node->in[LOSS_RUNNING];
        out[LOSS_SUMS] = (tr_tensor_desc){TR_F64, TR_SHAPE1(TR_SUMS)};
        *out_count = 2;
    }
    return status;
}

static int backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    (void)node;
    rules[0] = (tr_rule){
        .op = &tr__op_linear_cross_entropy_slice_loss_backward,
        .in = {TR_IN(LOSS_RUNNING), TR_IN(LOSS_BEST), TR_IN(LOSS_TARGETS)},
        .out = {TR_GRAD_IN(LOSS_RUNNING), TR_OUT(0)},
    };
    return 1;
}

// ---- kernels

static int64_t row_count(const tr_op_desc *desc) {
    return tr_shape_count(desc->in[LOSS_TARGETS].shape);
}

// Row by row in their order, as the head does.
static void add_sums(const tr_op_desc *desc, const tr_launch *launch, double *sums) {
    const double *running = launch->in[LOSS_RUNNING];  // [rows, RUNNING]
    const float *best = launch->in[LOSS_BEST];         // [rows, BEST]
    const int32_t *targets = launch->in[LOSS_TARGETS]; // [rows]
    for (int64_t r = 0; r < row_count(desc); r++) {
        if (targets[r] >= 0) {
            const double *row = running + r * RUNNING;
            sums[TR_SUM_LOSS] += row[RUNNING_LSE] - row[RUNNING_PICKED];
            sums[TR_SUM_COUNT] += 1;
            sums[TR_SUM_CORRECT] += best[r * BEST + BEST_IS_TARGET] > 0;
        }
    }
}

static void launch_loss(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    add_sums(desc, launch, launch->out[0]);
}

static void launch_backward(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    (void)state;
    const int32_t *targets = launch->in[LOSS_TARGETS]; // [rows]
    double *drunning = launch->out[LOSS_DRUNNING];     // [rows, RUNNING]
    bool add = launch->accumulate >> LOSS_DRUNNING & 1;
    for (int64_t r = 0; drunning && r < row_count(desc); r++) {
        double seed = targets[r] >= 0 ? launch->run->loss_seed : 0;
        double *row = drunning + r * RUNNING;
        row[RUNNING_LSE] = (add ? row[RUNNING_LSE] : 0) + seed;
        row[RUNNING_PICKED] = (add ? row[RUNNING_PICKED] : 0) - seed;
    }
    add_sums(desc, launch, launch->out[LOSS_SUMS]);
}

static bool supports(const tr_op_desc *desc) {
    return desc->in_count == LOSS_INPUTS && desc->in[LOSS_RUNNING].dtype == TR_F64 &&
           desc->in[LOSS_BEST].dtype == TR_F32 &&
           desc->in[LOSS_TARGETS].dtype == TR_I32;
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 0, out);
    out->flops = 4 * (double)row_count(desc);
}

const tr_kernel tr__lce_slice_loss_kernel = {
    .name = "head_slice_loss",
    .supports = supports,
    .cost = cost,
    .launch = launch_loss,
};

const tr_kernel tr__lce_slice_loss_backward_kernel = {
    .name = "head_slice_loss_backward",
    .supports = supports,
    .cost = cost,
    .launch = launch_backward,
};

const tr_op tr__op_linear_cross_entropy_slice_loss = {
    .name = "head_slice_loss",
    .flags = TR_OP_LOSS,
    .no_gradient = 1u << LOSS_BEST | 1u << LOSS_TARGETS,
    .infer = loss_infer,
    .backward = backward,
    .reference = &tr__lce_slice_loss_kernel,
};

const tr_op tr__op_linear_cross_entropy_slice_loss_backward = {
    .name = "head_slice_loss_backward",
    .infer = backward_infer,
    .reference = &tr__lce_slice_loss_backward_kernel,
};
