#include "ops/nn/pointwise/pointwise.h"

#include "ops/operand.h"

#include <string.h>

extern const tr_kernel tr__pointwise_reference, tr__pointwise_backward_reference;

static tr_status check_kind(const tr_op_node *node, tr_error *err) {
    tr_pointwise_attr attr;
    memcpy(&attr, node->attr, sizeof attr);
    if (attr.kind < 0 || attr.kind >= TR_POINTWISE_KINDS) {
        return tr_fail(err, TR_USAGE, "%s: there is no function %d", node->op->name,
                       (int)attr.kind);
    }
    return TR_OK;
}

static tr_status infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                       tr_error *err) {
    tr_status status = check_kind(node, err);
    return status == TR_OK ? tr__operand_same(node, 1, out, out_count, err) : status;
}

static tr_status backward_infer(const tr_op_node *node, tr_tensor_desc *out,
                                int *out_count, tr_error *err) {
    tr_status status = check_kind(node, err);
    return status == TR_OK ? tr__operand_same(node, 2, out, out_count, err) : status;
}

static int backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    rules[0] = (tr_rule){
        .op = &tr__op_pointwise_backward,
        .in = {TR_GRAD_OUT(0), TR_IN(0)},
        .out = {TR_GRAD_IN(0)},
    };
    memcpy(rules[0].attr, node->attr, sizeof(tr_pointwise_attr));
    return 1;
}

const tr_op tr__op_pointwise = {
    .name = "pointwise",
    .attr_bytes = sizeof(tr_pointwise_attr),
    .infer = infer,
    .backward = backward,
    .recompute_class = {TR_RECOMPUTE_ACTIVATION},
    .reference = &tr__pointwise_reference,
};

const tr_op tr__op_pointwise_backward = {
    .name = "pointwise_backward",
    .attr_bytes = sizeof(tr_pointwise_attr),
    .infer = backward_infer,
    .reference = &tr__pointwise_backward_reference,
};
