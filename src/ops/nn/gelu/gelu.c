#include "ops/nn/gelu/gelu.h"

#include "ops/operand.h"

#include <string.h>

extern const tr_kernel tr__gelu_reference, tr__gelu_backward_reference;

static tr_status gelu_infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                            tr_error *err) {
    return tr__operand_same(node, 1, out, out_count, err);
}

static tr_status gelu_backward_infer(const tr_op_node *node, tr_tensor_desc *out,
                                     int *out_count, tr_error *err) {
    return tr__operand_same(node, 2, out, out_count, err);
}

static int gelu_backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    rules[0] = (tr_rule){
        .op = &tr__op_gelu_backward,
        .in = {TR_GRAD_OUT(0), TR_IN(0)},
        .out = {TR_GRAD_IN(0)},
    };
    memcpy(rules[0].attr, node->attr, sizeof(tr_gelu_attr));
    return 1;
}

const tr_op tr__op_gelu = {
    .name = "gelu",
    .attr_bytes = sizeof(tr_gelu_attr),
    .split = tr__split_elements,
    .infer = gelu_infer,
    .backward = gelu_backward,
    .recompute_class = {TR_RECOMPUTE_ACTIVATION},
    .reference = &tr__gelu_reference,
};

const tr_op tr__op_gelu_backward = {
    .name = "gelu_backward",
    .attr_bytes = sizeof(tr_gelu_attr),
    .infer = gelu_backward_infer,
    .reference = &tr__gelu_backward_reference,
};
