#include "ops/flat/copy/copy.h"

#include "ops/operand.h"

extern const tr_kernel tr__copy_reference;

static int copy_backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    (void)node;
    rules[0] = (tr_rule){.in = {TR_GRAD_OUT(0)}, .out = {TR_GRAD_IN(0)}};
    return 1;
}

const tr_op tr__op_copy = {
    .name = "copy",
    .infer = tr__infer_as_input,
    .backward = copy_backward,
    .reference = &tr__copy_reference,
};
