#include "ops/nn/relu/relu.h"

#include "ops/operand.h"

extern const tr_kernel tr__relu_reference, tr__relu_backward_reference;

static int relu_backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    (void)node;
    rules[0] = (tr_rule){
        .op = &tr__op_relu_backward,
        .in = {TR_GRAD_OUT(0), TR_OUT(0)},
        .out = {TR_GRAD_IN(0)},
    };
    return 1;
}

const tr_op tr__op_relu = {
    .name = "relu",
    .split = tr__split_elements,
    .infer = tr__infer_as_input,
    .backward = relu_backward,
    .recompute_class = {TR_RECOMPUTE_ACTIVATION},
    .reference = &tr__relu_reference,
};

const tr_op tr__op_relu_backward = {
    .name = "relu_backward",
    .infer = tr__infer_as_inputs,
    .reference = &tr__relu_backward_reference,
};
