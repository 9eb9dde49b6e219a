#include "ops/nn/softmax/softmax.h"

#include "ops/operand.h"

#include <string.h>

extern const tr_kernel tr__softmax_reference, tr__softmax_backward_reference;

static int backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    rules[0] = (tr_rule){
        .op = &tr__op_softmax_backward,
        .in = {TR_GRAD_OUT(0), TR_OUT(0)},
        .out = {TR_GRAD_IN(0)},
    };
    memcpy(rules[0].attr, node->attr, sizeof(tr_softmax_attr));
    return 1;
}

const tr_op tr__op_softmax = {
    .name = "softmax",
    .attr_bytes = sizeof(tr_softmax_attr),
    .infer = tr__infer_as_input,
    .backward = backward,
    .recompute_class = {TR_RECOMPUTE_ATTENTION},
    .reference = &tr__softmax_reference,
};

const tr_op tr__op_softmax_backward = {
    .name = "softmax_backward",
    .attr_bytes = sizeof(tr_softmax_attr),
    .infer = tr__infer_as_inputs,
    .reference = &tr__softmax_backward_reference,
};
