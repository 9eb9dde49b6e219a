#include "ops/linear_fp8/linear_fp8.h"

#include "ops/relu/relu.h"

#include <string.h>

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

static tr_rule with_attr(const tr_op_node *node, tr_rule rule) {
    memcpy(rule.attr, node->attr, sizeof(tr_linear_attr));
    return rule;
}

static int backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    const tr_linear_attr *attr = node->attr;
    bool bias = node->in_count > 2 && node->in[2].dtype != TR_NONE;
    bool fixed = node->unwanted >> 1 & 1; // the weight
    int count = 0;
    tr_ref dy = TR_GRAD_OUT(0);
    if (attr->activation == TR_ACTIVATION_RELU) {
        rules[count++] = (tr_rule){
            .op = &tr__op_relu_backward,
            .in = {TR_GRAD_OUT(0), TR_OUT(0)},
            .out = {TR_TEMP(0)},
            .temp = {node->out[0]},
        };
        dy = (tr_ref)TR_TEMP(0);
    }
    if (!fixed) { // first: after it the graph may let go of x
        rules[count++] =
            with_attr(node, (tr_rule){.op = &tr__op_linear_fp8_backward_weight,
                                      .in = {dy, TR_IN(0)},
                                      .out = {TR_GRAD_IN(1)}});
    }
    if (bias) {
        rules[count++] = with_attr(node, (tr_rule){.op = &tr__op_linear_backward_bias,
                                                   .in = {dy, TR_IN(0)},
                                                   .out = {TR_ABSENT, TR_GRAD_IN(2)}});
    }
    rules[count++] = with_attr(node, (tr_rule){.op = &tr__op_linear_fp8_backward_input,
                                               .in = {dy, TR_IN(1)},
                                               .out = {TR_GRAD_IN(0)}});
    return count;
}

const tr_op tr__op_linear_fp8 = {
    .name = "linear_fp8",
    .attr_bytes = sizeof(tr_linear_attr),
    .flags = TR_OP_FP8,
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
