// Logits for sampling and for callers. Of each sample the row that has its last target:
// the rows are gathered, so that it is one small product. Or of every row.
#include "ops/nn/linear/cpu_products.h"
#include "ops/nn/linear_cross_entropy/cpu_gathered.h"
#include "ops/operand.h"

extern const tr_kernel tr__lce_logits_kernel, tr__lce_logits_rows_kernel;

// A row of zeros must come out for a sample without target, which a fused sum would
// not leave alone: the bias is in every row.
static bool supports(const tr_op_desc *desc) {
    tr_dtype real = desc->in[HEAD_X].dtype;
    return tr__matmul_has(real) && tr__lce_supports(desc, real) &&
           desc->out[0].dtype == TR_F32 && !(desc->accumulate & 1);
}

static tr_status prepare_rows(const tr_op_desc *desc, tr_linear_dims dims, void **state,
                              tr_error *err) {
    tr_matmul_desc product = tr__product_output(&dims, desc->target.workers);
    product.type = desc->in[HEAD_X].dtype;
    product.bias = tr__lce_has_bias(desc);
    product.fresh = true;
    return tr__matmul_create(&product, (tr_matmul **)state, err);
}

static tr_status prepare(const tr_op_desc *desc, void **state, tr_error *err) {
    return prepare_rows(desc, tr__gathered_dims(desc), state, err);
}

static tr_status prepare_all(const tr_op_desc *desc, void **state, tr_error *err) {
    return prepare_rows(desc, tr__lce_dims(desc), state, err);
}

static size_t workspace(const tr_op_desc *desc, const void *state) {
    return tr__gathered_bytes(desc) + tr__matmul_workspace(state);
}

static void launch_logits(const tr_op_desc *desc, void *state,
                          const tr_launch *launch) {
    float *logits = launch->out[0];     // [B, V]
    char *gathered = launch->workspace; // [B, C]
    tr__gathered_take(desc, launch, gathered);
    tr__launch_note(launch,
                    tr__matmul_run(state, false, gathered, launch->in[HEAD_WEIGHT],
                                   launch->in[HEAD_BIAS], logits,
                                   gathered + tr__gathered_bytes(desc)));
    tr__gathered_clear(desc, launch, logits);
}

static size_t all_workspace(const tr_op_desc *desc, const void *state) {
    (void)desc;
    return tr__matmul_workspace(state);
}

static void launch_all(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)desc;
    tr__launch_note(launch,
                    tr__matmul_run(state, false, launch->in[HEAD_X],
                                   launch->in[HEAD_WEIGHT], launch->in[HEAD_BIAS],
                                   launch->out[0], launch->workspace));
}

static void release(void *state) {
    tr__matmul_destroy(state);
}

const tr_kernel tr__lce_logits_kernel = {
    .name = "head_logits.cpu",
    .supports = supports,
    .cost = tr__lce_logits_cost,
    .prepare = prepare,
    .workspace = workspace,
    .launch = launch_logits,
    .release = release,
};

const tr_kernel tr__lce_logits_rows_kernel = {
    .name = "head_logits_rows.cpu",
    .supports = supports,
    .cost = tr__lce_forward_cost,
    .prepare = prepare_all,
    .workspace = all_workspace,
    .launch = launch_all,
    .release = release,
};
