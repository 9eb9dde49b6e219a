#include "ops/nn/broadcast/broadcast.h"

#include "ops/operand.h"

#include <string.h>

extern const tr_kernel tr__expand_reference, tr__sum_reference, tr__repeat_reference,
    tr__repeat_backward_reference;

// Input 0 is of a real type and of that rank, and the node repeats.
static tr_status check(const tr_op_node *node, int inputs, int rank,
                       tr_broadcast_attr *attr, tr_error *err) {
    char text[TR_SHAPE_TEXT];
    memcpy(attr, node->attr, sizeof *attr);
    tr_status status = tr__operand_count(node, inputs, inputs, err);
    status = status == TR_OK ? tr__operand_real(node, 0, err) : status;
    if (status == TR_OK && node->in[0].shape.rank != rank && rank > 0) {
        return tr_fail(err, TR_USAGE, "%s: x has the shape %s, not %d dimensions",
                       node->op->name, tr__shape_text(node->in[0].shape, text), rank);
    }
    if (status == TR_OK && attr->times < 1) {
        return tr_fail(err, TR_USAGE, "%s: %d times", node->op->name, (int)attr->times);
    }
    return status;
}

static tr_status expand_infer(const tr_op_node *node, tr_tensor_desc *out,
                              int *out_count, tr_error *err) {
    tr_broadcast_attr attr;
    tr_status status = check(node, 1, 3, &attr, err);
    const int64_t *x = node->in[0].shape.dim;
    out[0] =
        (tr_tensor_desc){node->in[0].dtype, TR_SHAPE4(x[0], x[1], attr.times, x[2])};
    *out_count = 1;
    return status;
}

static tr_status sum_infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                           tr_error *err) {
    tr_broadcast_attr attr;
    char text[TR_SHAPE_TEXT];
    tr_status status = check(node, 1, 4, &attr, err);
    const int64_t *x = node->in[0].shape.dim;
    if (status == TR_OK && x[2] != attr.times) {
        return tr_fail(err, TR_USAGE, "sum: x of the shape %s has no %d parts",
                       tr__shape_text(node->in[0].shape, text), (int)attr.times);
    }
    out[0] = (tr_tensor_desc){node->in[0].dtype, TR_SHAPE3(x[0], x[1], x[3])};
    *out_count = 1;
    return status;
}

static tr_status repeat_infer(const tr_op_node *node, tr_tensor_desc *out,
                              int *out_count, tr_error *err) {
    tr_broadcast_attr attr;
    tr_status status = check(node, 2, 0, &attr, err);
    if (status == TR_OK) {
        status = node->in[1].dtype == TR_I32 ? tr__operand_dtype(node, 1, TR_I32, err)
                                             : tr__operand_real(node, 1, err);
    }
    if (status == TR_OK) {
        out[0] = (tr_tensor_desc){node->in[0].dtype,
                                  TR_SHAPE3(node->in[1].shape.dim[0], attr.times,
                                            tr_shape_count(node->in[0].shape))};
        *out_count = 1;
    }
    return status;
}

static tr_status repeat_backward_infer(const tr_op_node *node, tr_tensor_desc *out,
                                       int *out_count, tr_error *err) {
    tr_broadcast_attr attr;
    char text[TR_SHAPE_TEXT], of[TR_SHAPE_TEXT];
    tr_status status = check(node, 2, 3, &attr, err);
    status = status == TR_OK ? tr__operand_real(node, 1, err) : status;
    if (status != TR_OK) {
        return status;
    }
    const int64_t *dy = node->in[0].shape.dim;
    if (dy[1] != attr.times || dy[2] != tr_shape_count(node->in[1].shape)) {
        return tr_fail(err, TR_USAGE,
                       "repeat_backward: dy of the shape %s is not %d times %s",
                       tr__shape_text(node->in[0].shape, text), (int)attr.times,
                       tr__shape_text(node->in[1].shape, of));
    }
    out[0] = tr__param_gradient(node->in[1]);
    *out_count = 1;
    return TR_OK;
}

static int other_way(const tr_op_node *node, const tr_op *op,
                     tr_rule rules[TR_OP_RULES_MAX]) {
    rules[0] = (tr_rule){.op = op, .in = {TR_GRAD_OUT(0)}, .out = {TR_GRAD_IN(0)}};
    memcpy(rules[0].attr, node->attr, sizeof(tr_broadcast_attr));
    return 1;
}

static int expand_backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    return other_way(node, &tr__op_sum, rules);
}

static int sum_backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    return other_way(node, &tr__op_expand, rules);
}

static int repeat_backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    rules[0] = (tr_rule){.op = &tr__op_repeat_backward,
                         .in = {TR_GRAD_OUT(0), TR_IN(0)},
                         .out = {TR_GRAD_IN(0)}};
    memcpy(rules[0].attr, node->attr, sizeof(tr_broadcast_attr));
    return 1;
}

const tr_op tr__op_expand = {
    .name = "expand",
    .attr_bytes = sizeof(tr_broadcast_attr),
    .infer = expand_infer,
    .backward = expand_backward,
    .recompute_class = {TR_RECOMPUTE_ACTIVATION},
    .reference = &tr__expand_reference,
};

const tr_op tr__op_sum = {
    .name = "sum",
    .attr_bytes = sizeof(tr_broadcast_attr),
    .infer = sum_infer,
    .backward = sum_backward,
    .reference = &tr__sum_reference,
};

const tr_op tr__op_repeat = {
    .name = "repeat",
    .attr_bytes = sizeof(tr_broadcast_attr),
    .no_gradient = 1 << 1,
    .shape_only = 1 << 1,
    .infer = repeat_infer,
    .backward = repeat_backward,
    .recompute_class = {TR_RECOMPUTE_ACTIVATION},
    .reference = &tr__repeat_reference,
};

const tr_op tr__op_repeat_backward = {
    .name = "repeat_backward",
    .attr_bytes = sizeof(tr_broadcast_attr),
    .shape_only = 1 << 1,
    .infer = repeat_backward_infer,
    .reference = &tr__repeat_backward_reference,
};
