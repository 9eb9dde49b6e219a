#include "ops/nn/auxiliary_loss/auxiliary_loss.h"

#include "ops/operand.h"

extern const tr_kernel tr__auxiliary_loss_reference,
    tr__auxiliary_loss_backward_reference;

static tr_status check(const tr_op_node *node, tr_error *err) {
    tr_status status = tr__operand_count(node, 3, 3, err);
    status = status == TR_OK ? tr__operand_real(node, 0, err) : status;
    if (status != TR_OK) {
        return status;
    }
    tr_shape rows = node->in[0].shape;
    if (rows.rank < 2) {
        return tr_fail(err, TR_USAGE, "%s: logits are [rows, classes]", node->op->name);
    }
    rows.dim[--rows.rank] = 0;
    status = tr__operand_shape(node, 1, TR_I32, rows, err);
    return status == TR_OK ? tr__operand_shape(node, 2, TR_F32, rows, err) : status;
}

static tr_status infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                       tr_error *err) {
    return tr__infer_loss(check(node, err), out, out_count);
}

static tr_status backward_infer(const tr_op_node *node, tr_tensor_desc *out,
                                int *out_count, tr_error *err) {
    return tr__infer_loss_backward(node, check(node, err), out, out_count);
}

static int backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    (void)node;
    rules[0] = (tr_rule){.op = &tr__op_auxiliary_loss_backward,
                         .in = {TR_IN(0), TR_IN(1), TR_IN(2)},
                         .out = {TR_GRAD_IN(0), TR_OUT(0)}};
    return 1;
}

const tr_op tr__op_auxiliary_loss = {
    .name = "auxiliary_loss",
    .flags = TR_OP_LOSS,
    .no_gradient = 1 << 1 | 1 << 2,
    .infer = infer,
    .backward = backward,
    .reference = &tr__auxiliary_loss_reference,
};

const tr_op tr__op_auxiliary_loss_backward = {
    .name = "auxiliary_loss_backward",
    .infer = backward_infer,
    .reference = &tr__auxiliary_loss_backward_reference,
};
