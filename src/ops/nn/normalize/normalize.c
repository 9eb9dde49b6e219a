#include "ops/nn/normalize/normalize.h"

#include "ops/operand.h"

extern const tr_kernel tr__normalize_reference, tr__normalize_backward_reference;

static tr_status infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                       tr_error *err) {
    return tr__operand_same(node, 1, out, out_count, err);
}

static tr_status backward_infer(const tr_op_node *node, tr_tensor_desc *out,
                                int *out_count, tr_error *err) {
    return tr__operand_same(node, 2, out, out_count, err);
}

static int backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    (void)node;
    rules[0] = (tr_rule){.op = &tr__op_normalize_backward,
                         .in = {TR_GRAD_OUT(0), TR_IN(0)},
                         .out = {TR_GRAD_IN(0)}};
    return 1;
}

const tr_op tr__op_normalize = {
    .name = "normalize",
    .infer = infer,
    .backward = backward,
    .reference = &tr__normalize_reference,
};

const tr_op tr__op_normalize_backward = {
    .name = "normalize_backward",
    .infer = backward_infer,
    .reference = &tr__normalize_backward_reference,
};
