#include "ops/nn/residual/residual.h"

#include "ops/operand.h"

extern const tr_kernel tr__residual_reference;

static tr_status residual_infer(const tr_op_node *node, tr_tensor_desc *out,
                                int *out_count, tr_error *err) {
    const tr_dropout_attr *attr = node->attr;
    tr_status status = tr__dropout_check(node->op->name, attr->probability, err);
    return status == TR_OK ? tr__operand_same(node, 2, out, out_count, err) : status;
}

static int residual_backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    rules[0] = (tr_rule){.in = {TR_GRAD_OUT(0)}, .out = {TR_GRAD_IN(0)}};
    tr__dropout_rule(node->attr, (tr_ref)TR_GRAD_OUT(0), (tr_ref)TR_GRAD_IN(1),
                     &rules[1]);
    return 2;
}

const tr_op tr__op_residual = {
    .name = "residual",
    .attr_bytes = sizeof(tr_dropout_attr),
    .split = tr__dropout_split_alone,
    .infer = residual_infer,
    .backward = residual_backward,
    .recompute_class = {TR_RECOMPUTE_RESIDUAL},
    .reference = &tr__residual_reference,
};
