// The gradients of weight and bias: a product, and sums over the rows of dy.
#include "backend/cpu/column_sums.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/real.h"
#include "ops/nn/linear/cpu_products.h"
#include "ops/nn/linear/operands.h"
#include "ops/operand.h"

extern const tr_kernel TR_ISA_NAME(tr__linear_backward_weight_kernel);
extern const tr_kernel TR_ISA_NAME(tr__linear_backward_bias_kernel);

static bool is_wanted(const tr_op_desc *desc, int i) {
    return desc->out_count > i && desc->out[i].dtype != TR_NONE;
}

static tr_status prepare(const tr_op_desc *desc, void **state, tr_error *err) {
    tr_linear_dims dims = tr__linear_weight_dims(desc);
    tr_matmul_desc product = tr__product_weight(&dims, desc->target.workers);
    product.type = TR_REAL;
    product.fresh = desc->fresh & 1;
    product.accumulate = desc->accumulate & 1;
    *state = NULL;
    return is_wanted(desc, 0) ? tr__matmul_create(&product, (tr_matmul **)state, err)
                              : TR_OK;
}

// The sums are taken before the product, in the same memory.
static size_t workspace(const tr_op_desc *desc, const void *state) {
    tr_linear_dims dims = tr__linear_weight_dims(desc);
    size_t product = tr__matmul_workspace(state);
    size_t sums =
        is_wanted(desc, 1) ? tr__column_sums_workspace(dims.rows, dims.out) : 0;
    return product > sums ? product : sums;
}

static void launch_weight(const tr_op_desc *desc, void *state,
                          const tr_launch *launch) {
    const tr_real *dy = launch->in[0]; // [rows, out]
    const tr_real *x = launch->in[1];  // [rows, in]
    tr_linear_dims dims = tr__linear_weight_dims(desc);
    if (is_wanted(desc, 1)) {
        tr__column_sums(dy, dims.out, dims.rows, dims.out, desc->target.workers,
                        launch->accumulate & 2, launch->workspace, launch->out[1]);
    }
    if (is_wanted(desc, 0)) {
        tr__launch_note(launch,
                        tr__product_weight_run(state, &dims, launch->accumulate & 1, dy,
                                               x, launch->out[0], launch->workspace));
    }
}

// The gradients of the parameters are f32.
static bool supports(const tr_op_desc *desc) {
    return tr__matmul_has(TR_REAL) && tr__desc_real(desc, TR_REAL, 0, 1 << 0 | 1 << 1);
}

static void release(void *state) {
    tr__matmul_destroy(state);
}

const tr_kernel TR_ISA_NAME(tr__linear_backward_weight_kernel) = {
    .name = "linear_backward_weight.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = tr__linear_weight_cost,
    .prepare = prepare,
    .workspace = workspace,
    .launch = launch_weight,
    .release = release,
};

// Without a product, and without x.
const tr_kernel TR_ISA_NAME(tr__linear_backward_bias_kernel) = {
    .name = "linear_backward_bias.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = tr__linear_bias_cost,
    .prepare = prepare,
    .workspace = workspace,
    .launch = launch_weight,
    .release = release,
};
