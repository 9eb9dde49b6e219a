#include "ops/nn/gelu/gelu.h"

#include "ops/operand.h"

#include <string.h>

extern const tr_kernel tr__gelu_reference, tr__gelu_backward_reference;

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
    .infer = tr__infer_as_input,
    .backward = gelu_backward,
    .recompute_class = {TR_RECOMPUTE_ACTIVATION},
    .reference = &tr__gelu_reference,
};

const tr_op tr__op_gelu_backward = {
    .name = "gelu_backward",
    .attr_bytes = sizeof(tr_gelu_attr),
    .infer = tr__infer_as_inputs,
    .reference = &tr__gelu_backward_reference,
};
