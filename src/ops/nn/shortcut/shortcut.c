#include "ops/nn/shortcut/shortcut.h"

#include "ops/operand.h"

#include <string.h>

extern const tr_kernel tr__shortcut_reference, tr__shortcut_backward_reference;

static int64_t strided(int64_t side, int64_t stride) {
    return (side + stride - 1) / stride;
}

static tr_status check_image(const tr_op_node *node, tr_error *err) {
    const tr_shortcut_attr *attr = node->attr;
    char text[TR_SHAPE_TEXT];
    tr_status status = tr__operand_count(node, 1, 1, err);
    status = status == TR_OK ? tr__operand_real(node, 0, err) : status;
    if (status == TR_OK && (node->in[0].shape.rank != 4 || attr->stride < 1)) {
        return tr_fail(err, TR_USAGE, "%s: stride %d of the shape %s, not [B, H, W, C]",
                       node->op->name, attr->stride,
                       tr__shape_text(node->in[0].shape, text));
    }
    return status;
}

static tr_status infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                       tr_error *err) {
    const tr_shortcut_attr *attr = node->attr;
    tr_status status = check_image(node, err);
    if (status != TR_OK) {
        return status;
    }
    tr_shape x = node->in[0].shape;
    if (attr->channels < x.dim[3]) {
        return tr_fail(err, TR_USAGE, "%s: %lld channels do not go into %d",
                       node->op->name, (long long)x.dim[3], attr->channels);
    }
    out[0] = (tr_tensor_desc){
        node->in[0].dtype, TR_SHAPE4(x.dim[0], strided(x.dim[1], attr->stride),
                                     strided(x.dim[2], attr->stride), attr->channels)};
    *out_count = 1;
    return TR_OK;
}

static tr_status backward_infer(const tr_op_node *node, tr_tensor_desc *out,
                                int *out_count, tr_error *err) {
    const tr_shortcut_attr *attr = node->attr;
    tr_status status = check_image(node, err);
    if (status != TR_OK) {
        return status;
    }
    int64_t batch = node->in[0].shape.dim[0];
    tr_shape y = TR_SHAPE4(batch, strided(attr->height, attr->stride),
                           strided(attr->width, attr->stride), attr->channels);
    status = tr__operand_shape(node, 0, node->in[0].dtype, y, err);
    if (status == TR_OK) {
        out[0] =
            (tr_tensor_desc){node->in[0].dtype,
                             TR_SHAPE4(batch, attr->height, attr->width, attr->given)};
        *out_count = 1;
    }
    return status;
}

static int backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    tr_shortcut_attr attr = *(const tr_shortcut_attr *)node->attr;
    attr.height = (int)node->in[0].shape.dim[1];
    attr.width = (int)node->in[0].shape.dim[2];
    attr.given = (int)node->in[0].shape.dim[3];
    rules[0] = (tr_rule){.op = &tr__op_shortcut_backward,
                         .in = {TR_GRAD_OUT(0)},
                         .out = {TR_GRAD_IN(0)}};
    memcpy(rules[0].attr, &attr, sizeof attr);
    return 1;
}

const tr_op tr__op_shortcut = {
    .name = "shortcut",
    .attr_bytes = sizeof(tr_shortcut_attr),
    .infer = infer,
    .backward = backward,
    .reference = &tr__shortcut_reference,
};

const tr_op tr__op_shortcut_backward = {
    .name = "shortcut_backward",
    .attr_bytes = sizeof(tr_shortcut_attr),
    .infer = backward_infer,
    .reference = &tr__shortcut_backward_reference,
};
