#include "ops/nn/normalize/normalize.h"

#include "ops/operand.h"

extern const tr_kernel tr__normalize_reference, tr__normalize_backward_reference;

static int backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    (void)node;
    rules[0] = (tr_rule){.op = &tr__op_normalize_backward,
                         .in = {TR_GRAD_OUT(0), TR_IN(0)},
                         .out = {TR_GRAD_IN(0)}};
    return 1;
}

const tr_op tr__op_normalize = {
    .name = "normalize",
    .infer = tr__infer_as_input,
    .backward = backward,
    .reference = &tr__normalize_reference,
};

const tr_op tr__op_normalize_backward = {
    .name = "normalize_backward",
    .infer = tr__infer_as_inputs,
    .reference = &tr__normalize_backward_reference,
};
