#include "ops/nn/text_pool/text_pool.h"

#include "ops/nn/positions.h"

#include <string.h>

extern const tr_kernel tr__text_pool_reference, tr__text_pool_backward_reference;

// x and its positions are inputs `x` and `positions`; *y: the shape of what comes of
// it.
static tr_status check(const tr_op_node *node, int x, int positions, tr_shape *y,
                       tr_error *err) {
    tr_text_pool_attr attr;
    char text[TR_SHAPE_TEXT];
    memcpy(&attr, node->attr, sizeof attr);
    tr_status status = tr__operand_real(node, x, err);
    if (status != TR_OK) {
        return status;
    }
    tr_shape shape = node->in[x].shape;
    bool packed = tr__has_positions(node, positions);
    if (shape.rank != 3) {
        return tr_fail(err, TR_USAGE, "%s: x has the shape %s, not [B, S, C]",
                       node->op->name, tr__shape_text(shape, text));
    }
    if (attr.kind < 0 || attr.kind > TR_TEXT_LAST || attr.texts < 1 ||
        attr.texts > (packed ? shape.dim[1] : 1)) {
        return tr_fail(err, TR_USAGE,
                       "%s: %d texts of a sample of %lld tokens%s, pooled in way %d",
                       node->op->name, (int)attr.texts, (long long)shape.dim[1],
                       packed ? "" : " without positions", (int)attr.kind);
    }
    *y = TR_SHAPE3(shape.dim[0], attr.texts, shape.dim[2]);
    return tr__operand_positions(node, positions, shape, err);
}

static tr_status pool_infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                            tr_error *err) {
    tr_shape y;
    tr_status status = tr__operand_count(node, 1, 2, err);
    status = status == TR_OK ? check(node, 0, 1, &y, err) : status;
    if (status == TR_OK) {
        out[0] = (tr_tensor_desc){node->in[0].dtype, y};
        *out_count = 1;
    }
    return status;
}

static tr_status backward_infer(const tr_op_node *node, tr_tensor_desc *out,
                                int *out_count, tr_error *err) {
    tr_shape y;
    tr_status status = tr__operand_count(node, 2, 3, err);
    status = status == TR_OK ? check(node, 1, 2, &y, err) : status;
    status = status == TR_OK ? tr__operand_shape(node, 0, node->in[1].dtype, y, err)
                             : status;
    if (status == TR_OK) {
        out[0] = node->in[1];
        *out_count = 1;
    }
    return status;
}

static int backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    rules[0] = (tr_rule){.op = &tr__op_text_pool_backward,
                         .in = {TR_GRAD_OUT(0), TR_IN(0)},
                         .out = {TR_GRAD_IN(0)}};
    if (tr__has_positions(node, 1)) {
        rules[0].in[2] = (tr_ref)TR_IN(1);
    }
    memcpy(rules[0].attr, node->attr, sizeof(tr_text_pool_attr));
    return 1;
}

const tr_op tr__op_text_pool = {
    .name = "text_pool",
    .attr_bytes = sizeof(tr_text_pool_attr),
    .no_gradient = 1 << 1,
    .positions = 1 << 1,
    .infer = pool_infer,
    .backward = backward,
    .reference = &tr__text_pool_reference,
};

const tr_op tr__op_text_pool_backward = {
    .name = "text_pool_backward",
    .attr_bytes = sizeof(tr_text_pool_attr),
    .positions = 1 << 2,
    .shape_only = 1 << 1,
    .infer = backward_infer,
    .reference = &tr__text_pool_backward_reference,
};
