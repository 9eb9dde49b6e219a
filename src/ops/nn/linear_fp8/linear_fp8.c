// The ops, and their references: factors are rounded to codes of 8 bits, one number
// after the other, and back; the product of what comes of it is the reference of
// `linear`.
#include "ops/nn/linear/backward.h"
#include "ops/nn/linear_fp8/factors.h"

// ---- references

// Of x: [there]
static uint32_t largest_bits(const float *x, int64_t there) {
    uint32_t largest = 0;
    for (int64_t i = 0; i < there; i++) {
        uint32_t size = tr__f32_bits(x[i]) & 0x7FFFFFFF;
        largest = size > largest ? size : largest;
    }
    return largest;
}

// x, to: [count]
static void round_factor(tr_fp8 format, const float *x, int64_t count, int64_t there,
                         float *to) {
    tr_fp8_scale scale = tr__fp8_scale_of(format, largest_bits(x, there));
    for (int64_t i = 0; i < count; i++) {
        uint8_t code = tr__fp8_of_f32(format, x[i] * scale.by);
        to[i] = tr__fp8_to_f32(format, code) * scale.back;
    }
}

static size_t workspace(const tr_op_desc *desc, const void *state) {
    (void)state;
    return tr__fp8_copy_at(desc, TR_FP8_FACTORS);
}

static void launch_rounded(const tr_op_desc *desc, void *state,
                           const tr_launch *launch) {
    tr_op_desc plain = tr__fp8_plain_desc(desc);
    tr_launch same = *launch;
    for (int i = 0; i < TR_FP8_FACTORS; i++) {
        float *copy = (void *)((char *)launch->workspace + tr__fp8_copy_at(desc, i));
        round_factor(tr__fp8_factor_format(desc, i), launch->in[i],
                     tr__fp8_factor_count(desc, i),
                     tr__fp8_factor_there(desc, i, launch), copy);
        same.in[i] = copy;
    }
    plain.op->reference->launch(&plain, state, &same);
}

static const tr_kernel output_reference = {
    .name = "linear_fp8.reference",
    .supports = tr__desc_f32,
    .cost = tr__linear_output_cost,
    .workspace = workspace,
    .launch = launch_rounded,
};

static const tr_kernel input_reference = {
    .name = "linear_fp8_backward_input.reference",
    .supports = tr__desc_f32,
    .cost = tr__linear_input_cost,
    .workspace = workspace,
    .launch = launch_rounded,
};

static const tr_kernel weight_reference = {
    .name = "linear_fp8_backward_weight.reference",
    .supports = tr__desc_f32,
    .cost = tr__linear_weight_cost,
    .workspace = workspace,
    .launch = launch_rounded,
};

// ---- ops

static tr_status output_infer(const tr_op_node *node, tr_tensor_desc *out,
                              int *out_count, tr_error *err) {
    return tr__op_linear.infer(node, out, out_count, err);
}

static tr_status input_infer(const tr_op_node *node, tr_tensor_desc *out,
                             int *out_count, tr_error *err) {
    return tr__op_linear_backward_input.infer(node, out, out_count, err);
}

static tr_status weight_infer(const tr_op_node *node, tr_tensor_desc *out,
                              int *out_count, tr_error *err) {
    tr_status status = tr__op_linear_backward_weight.infer(node, out, out_count, err);
    *out_count = 1;
    return status;
}

static int backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    const tr_linear_ops ops = {.weight = &tr__op_linear_fp8_backward_weight,
                               .bias = &tr__op_linear_backward_bias,
                               .input = &tr__op_linear_fp8_backward_input};
    return tr__linear_rules(node, ops, rules);
}

const tr_op tr__op_linear_fp8 = {
    .name = "linear_fp8",
    .attr_bytes = sizeof(tr_linear_attr),
    .flags = TR_OP_FP8,
    .packed_input = 1 + 1,
    .infer = output_infer,
    .backward = backward,
    .recompute_class = {TR_RECOMPUTE_PRODUCT},
    .reference = &output_reference,
};

const tr_op tr__op_linear_fp8_backward_input = {
    .name = "linear_fp8_backward_input",
    .attr_bytes = sizeof(tr_linear_attr),
    .flags = TR_OP_FP8,
    .packed_input = 1 + 1,
    .infer = input_infer,
    .reference = &input_reference,
};

const tr_op tr__op_linear_fp8_backward_weight = {
    .name = "linear_fp8_backward_weight",
    .attr_bytes = sizeof(tr_linear_attr),
    .flags = TR_OP_FP8,
    .infer = weight_infer,
    .reference = &weight_reference,
};
