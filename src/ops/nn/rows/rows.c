#include "ops/nn/rows/rows.h"

#include "ops/operand.h"

#include <string.h>

extern const tr_kernel tr__take_rows_reference, tr__put_rows_reference;

// x has `from` tokens, the result has `to`.
static tr_status infer(const tr_op_node *node, int64_t from, int64_t to,
                       tr_tensor_desc *out, int *out_count, tr_error *err) {
    const tr_rows_attr *attr = node->attr;
    char text[TR_SHAPE_TEXT];
    tr_shape shape = node->in[0].shape;
    bool fits = shape.rank >= 2 && attr->first >= 0 && attr->count > 0 &&
                attr->first <= attr->tokens - attr->count && shape.dim[1] == from;
    if (!fits) {
        return tr_fail(err, TR_USAGE, "%s: no rows %lld to %lld of %lld in %s",
                       node->op->name, (long long)attr->first,
                       (long long)(attr->first + attr->count), (long long)attr->tokens,
                       tr__shape_text(shape, text));
    }
    out[0] = node->in[0];
    out[0].shape.dim[1] = to;
    *out_count = 1;
    return TR_OK;
}

static tr_status take_infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                            tr_error *err) {
    const tr_rows_attr *attr = node->attr;
    tr_status status = tr__operand_count(node, 1, 1, err);
    if (status == TR_OK && node->in[0].dtype != TR_I32) {
        status = tr__operand_real(node, 0, err);
    }
    return status == TR_OK ? infer(node, attr->tokens, attr->count, out, out_count, err)
                           : status;
}

static tr_status put_infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                           tr_error *err) {
    const tr_rows_attr *attr = node->attr;
    tr_status status = tr__operand_count(node, 1, 1, err);
    status = status == TR_OK ? tr__operand_real(node, 0, err) : status;
    return status == TR_OK ? infer(node, attr->count, attr->tokens, out, out_count, err)
                           : status;
}

static int backward_by(const tr_op_node *node, const tr_op *op, tr_rule *rule) {
    *rule = (tr_rule){.op = op, .in = {TR_GRAD_OUT(0)}, .out = {TR_GRAD_IN(0)}};
    memcpy(rule->attr, node->attr, sizeof(tr_rows_attr));
    return 1;
}

static int take_backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    bool real = node->in[0].dtype != TR_I32;
    return real ? backward_by(node, &tr__op_put_rows, &rules[0]) : 0;
}

static int put_backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    return backward_by(node, &tr__op_take_rows, &rules[0]);
}

const tr_op tr__op_take_rows = {
    .name = "take_rows",
    .attr_bytes = sizeof(tr_rows_attr),
    .infer = take_infer,
    .backward = take_backward,
    .reference = &tr__take_rows_reference,
};

const tr_op tr__op_put_rows = {
    .name = "put_rows",
    .attr_bytes = sizeof(tr_rows_attr),
    .infer = put_infer,
    .backward = put_backward,
    .reference = &tr__put_rows_reference,
};
