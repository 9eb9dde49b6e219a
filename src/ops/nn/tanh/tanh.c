#include "ops/nn/tanh/tanh.h"

#include "ops/operand.h"

extern const tr_kernel tr__tanh_reference, tr__tanh_backward_reference;

static int tanh_backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    (void)node;
    rules[0] = (tr_rule){
        .op = &tr__op_tanh_backward,
        .in = {TR_GRAD_OUT(0), TR_OUT(0)},
        .out = {TR_GRAD_IN(0)},
    };
    return 1;
}

const tr_op tr__op_tanh = {
    .name = "tanh",
    .split = tr__split_elements,
    .infer = tr__infer_as_input,
    .backward = tanh_backward,
    .recompute_class = {TR_RECOMPUTE_ACTIVATION},
    .reference = &tr__tanh_reference,
};

const tr_op tr__op_tanh_backward = {
    .name = "tanh_backward",
    .infer = tr__infer_as_inputs,
    .reference = &tr__tanh_backward_reference,
};
