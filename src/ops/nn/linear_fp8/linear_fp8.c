#include "ops/nn/linear_fp8/linear_fp8.h"

#include "ops/nn/linear/backward.h"

extern const tr_kernel tr__linear_fp8_reference,
    tr__linear_fp8_backward_input_reference, tr__linear_fp8_backward_weight_reference;

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
    .reference = &tr__linear_fp8_reference,
};

const tr_op tr__op_linear_fp8_backward_input = {
    .name = "linear_fp8_backward_input",
    .attr_bytes = sizeof(tr_linear_attr),
    .flags = TR_OP_FP8,
    .packed_input = 1 + 1,
    .infer = input_infer,
    .reference = &tr__linear_fp8_backward_input_reference,
};

const tr_op tr__op_linear_fp8_backward_weight = {
    .name = "linear_fp8_backward_weight",
    .attr_bytes = sizeof(tr_linear_attr),
    .flags = TR_OP_FP8,
    .infer = weight_infer,
    .reference = &tr__linear_fp8_backward_weight_reference,
};
