#include "ops/nn/cross_entropy/cross_entropy.h"

#include "ops/operand.h"

#include <string.h>

extern const tr_kernel tr__cross_entropy_reference,
    tr__cross_entropy_backward_reference, tr__cross_entropy_logits_reference,
    tr__cross_entropy_each_reference, tr__cross_entropy_each_backward_reference;

enum { D_EACH = 3 };

// most: inputs.
static tr_status check(const tr_op_node *node, int most, tr_error *err) {
    tr_status status = tr__operand_count(node, 2, most, err);
    status = status == TR_OK ? tr__operand_real(node, 0, err) : status;
    if (status != TR_OK) {
        return status;
    }
    tr_cross_entropy_attr attr;
    memcpy(&attr, node->attr, sizeof attr);
    tr_tensor_desc x = node->in[0];
    tr_shape rows = x.shape, classes = {1, {x.shape.dim[x.shape.rank - 1]}};
    if (x.shape.rank < 2 || !(attr.smoothing >= 0 && attr.smoothing < 1)) {
        return tr_fail(err, TR_USAGE,
                       "%s: logits are [rows, classes], and smoothing is in [0, 1)",
                       node->op->name);
    }
    rows.rank--;
    rows.dim[rows.rank] = 0;
    status = tr__operand_shape(node, 1, TR_I32, rows, err);
    if (status == TR_OK && node->in_count > 2 && node->in[2].dtype != TR_NONE) {
        status = tr__operand_shape(node, 2, x.dtype, classes, err);
    }
    return status;
}

static tr_status infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                       tr_error *err) {
    return tr__infer_loss(check(node, 3, err), out, out_count);
}

static tr_status backward_infer(const tr_op_node *node, tr_tensor_desc *out,
                                int *out_count, tr_error *err) {
    return tr__infer_loss_backward(node, check(node, 3, err), out, out_count);
}

static tr_status logits_infer(const tr_op_node *node, tr_tensor_desc *out,
                              int *out_count, tr_error *err) {
    return tr__infer_logits(node, check(node, 3, err), out, out_count);
}

static tr_status each_infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                            tr_error *err) {
    tr_status status = check(node, 3, err);
    if (status == TR_OK) {
        out[0] = (tr_tensor_desc){TR_F32, node->in[1].shape};
        *out_count = 1;
    }
    return status;
}

static tr_status each_backward_infer(const tr_op_node *node, tr_tensor_desc *out,
                                     int *out_count, tr_error *err) {
    tr_status status = check(node, D_EACH + 1, err);
    if (status == TR_OK) {
        status = tr__operand_shape(node, D_EACH, TR_F32, node->in[1].shape, err);
    }
    if (status == TR_OK) {
        out[0] = node->in[0];
        *out_count = 1;
    }
    return status;
}

static int backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    rules[0] = (tr_rule){.op = &tr__op_cross_entropy_backward,
                         .in = {TR_IN(0), TR_IN(1), TR_IN(2)},
                         .out = {TR_GRAD_IN(0), TR_OUT(0)}};
    memcpy(rules[0].attr, node->attr, sizeof(tr_cross_entropy_attr));
    return 1;
}

static int each_backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    rules[0] = (tr_rule){.op = &tr__op_cross_entropy_each_backward,
                         .in = {TR_IN(0), TR_IN(1), TR_IN(2), TR_GRAD_OUT(0)},
                         .out = {TR_GRAD_IN(0)}};
    memcpy(rules[0].attr, node->attr, sizeof(tr_cross_entropy_attr));
    return 1;
}

const tr_op tr__op_cross_entropy = {
    .name = "cross_entropy",
    .attr_bytes = sizeof(tr_cross_entropy_attr),
    .flags = TR_OP_LOSS,
    .no_gradient = 1 << 1 | 1 << 2,
    .infer = infer,
    .backward = backward,
    .reference = &tr__cross_entropy_reference,
};

const tr_op tr__op_cross_entropy_backward = {
    .name = "cross_entropy_backward",
    .attr_bytes = sizeof(tr_cross_entropy_attr),
    .infer = backward_infer,
    .reference = &tr__cross_entropy_backward_reference,
};

const tr_op tr__op_cross_entropy_logits = {
    .name = "cross_entropy_logits",
    .attr_bytes = sizeof(tr_cross_entropy_attr),
    .no_gradient = 1 << 1 | 1 << 2,
    .infer = logits_infer,
    .reference = &tr__cross_entropy_logits_reference,
};

const tr_op tr__op_cross_entropy_each = {
    .name = "cross_entropy_each",
    .attr_bytes = sizeof(tr_cross_entropy_attr),
    .no_gradient = 1 << 1 | 1 << 2,
    .infer = each_infer,
    .backward = each_backward,
    .reference = &tr__cross_entropy_each_reference,
};

const tr_op tr__op_cross_entropy_each_backward = {
    .name = "cross_entropy_each_backward",
    .attr_bytes = sizeof(tr_cross_entropy_attr),
    .infer = each_backward_infer,
    .reference = &tr__cross_entropy_each_backward_reference,
};
