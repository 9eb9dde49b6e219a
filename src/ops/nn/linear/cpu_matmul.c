// y = act(x W + b) and dx = dy W': one product each, fused by the product itself, the
// same for every instruction set.
#include "ops/nn/linear/cpu_products.h"
#include "ops/nn/linear/operands.h"
#include "ops/operand.h"

extern const tr_kernel tr__linear_kernel, tr__linear_backward_input_kernel;

static bool asked(uint32_t bits, int i) {
    return bits >> i & 1;
}

static tr_status output_prepare(const tr_op_desc *desc, void **state, tr_error *err) {
    tr_linear_dims dims = tr__linear_output_dims(desc);
    tr_matmul_desc product = tr__product_output(&dims, desc->target.workers);
    product.type = product.c_type = desc->in[0].dtype;
    product.bias = tr__linear_has_bias(desc);
    product.relu = tr__linear_attr(desc).activation == TR_ACTIVATION_RELU;
    product.fresh = asked(desc->fresh, 0);
    product.accumulate = asked(desc->accumulate, 0);
    return tr__matmul_create(&product, (tr_matmul **)state, err);
}

static tr_status input_prepare(const tr_op_desc *desc, void **state, tr_error *err) {
    tr_linear_dims dims = tr__linear_input_dims(desc);
    tr_matmul_desc product = tr__product_input(&dims, desc->target.workers);
    product.type = product.c_type = desc->in[0].dtype;
    product.fresh = asked(desc->fresh, 0);
    product.accumulate = asked(desc->accumulate, 0);
    return tr__matmul_create(&product, (tr_matmul **)state, err);
}

static size_t workspace(const tr_op_desc *desc, const void *state) {
    (void)desc;
    return tr__matmul_workspace(state);
}

static void output_launch(const tr_op_desc *desc, void *state,
                          const tr_launch *launch) {
    const float *bias = tr__linear_has_bias(desc) ? launch->in[2] : NULL;
    tr__launch_note(launch, tr__matmul_run(state, launch->accumulate & 1, launch->in[0],
                                           launch->in[1], bias, launch->out[0],
                                           launch->workspace));
}

static void input_launch(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)desc;
    tr__launch_note(launch, tr__matmul_run(state, launch->accumulate & 1, launch->in[0],
                                           launch->in[1], NULL, launch->out[0],
                                           launch->workspace));
}

// All operands are of one type.
static bool supports(const tr_op_desc *desc) {
    tr_dtype real = desc->in[0].dtype;
    return tr__matmul_has(real) && tr__desc_real(desc, real, 0, 0);
}

static void release(void *state) {
    tr__matmul_destroy(state);
}

const tr_kernel tr__linear_kernel = {
    .name = "linear.cpu",
    .supports = supports,
    .cost = tr__linear_output_cost,
    .prepare = output_prepare,
    .workspace = workspace,
    .launch = output_launch,
    .release = release,
};

const tr_kernel tr__linear_backward_input_kernel = {
    .name = "linear_backward_input.cpu",
    .supports = supports,
    .cost = tr__linear_input_cost,
    .prepare = input_prepare,
    .workspace = workspace,
    .launch = input_launch,
    .release = release,
};
