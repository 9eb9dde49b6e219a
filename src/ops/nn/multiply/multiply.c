#include "ops/nn/multiply/multiply.h"

#include "ops/operand.h"

extern const tr_kernel tr__multiply_reference;

static int backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    (void)node;
    for (int i = 0; i < 2; i++) {
        rules[i] = (tr_rule){
            .op = &tr__op_multiply,
            .in = {TR_GRAD_OUT(0), TR_IN(1 - i)},
            .out = {TR_GRAD_IN(i)},
        };
    }
    return 2;
}

const tr_op tr__op_multiply = {
    .name = "multiply",
    .split = tr__split_elements,
    .infer = tr__infer_as_inputs,
    .backward = backward,
    .recompute_class = {TR_RECOMPUTE_ACTIVATION},
    .reference = &tr__multiply_reference,
};
