#include "ops/flat/copy/copy.h"

#include "ops/operand.h"

extern const tr_kernel tr__copy_reference;

static tr_status copy_infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                            tr_error *err) {
    return tr__operand_same(node, 1, out, out_count, err);
}

static int copy_backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    (void)node;
    rules[0] = (tr_rule){.in = {TR_GRAD_OUT(0)}, .out = {TR_GRAD_IN(0)}};
    return 1;
}

const tr_op tr__op_copy = {
    .name = "copy",
    .infer = copy_infer,
    .backward = copy_backward,
    .reference = &tr__copy_reference,
};
