#include "ops/nn/silu/silu.h"

#include "ops/operand.h"

extern const tr_kernel tr__silu_reference, tr__silu_backward_reference;

static int silu_backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    (void)node;
    rules[0] = (tr_rule){
        .op = &tr__op_silu_backward,
        .in = {TR_GRAD_OUT(0), TR_IN(0)},
        .out = {TR_GRAD_IN(0)},
    };
    return 1;
}

const tr_op tr__op_silu = {
    .name = "silu",
    .split = tr__split_elements,
    .infer = tr__infer_as_input,
    .backward = silu_backward,
    .recompute_class = {TR_RECOMPUTE_ACTIVATION},
    .reference = &tr__silu_reference,
};

const tr_op tr__op_silu_backward = {
    .name = "silu_backward",
    .infer = tr__infer_as_inputs,
    .reference = &tr__silu_backward_reference,
};
