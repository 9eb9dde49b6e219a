#include "ops/nn/reshape/reshape.h"

#include "ops/operand.h"

#include <string.h>

// It moves elements as they are: the kernels are those of copy.
extern const tr_kernel tr__copy_reference;

// Elements of one sample.
static int64_t of_sample(tr_shape shape) {
    shape.dim[0] = 1;
    return tr_shape_count(shape);
}

static tr_status infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                       tr_error *err) {
    const tr_reshape_attr *attr = node->attr;
    char from[TR_SHAPE_TEXT], to[TR_SHAPE_TEXT];
    tr_status status = tr__operand_count(node, 1, 1, err);
    status = status == TR_OK ? tr__operand_real(node, 0, err) : status;
    if (status != TR_OK) {
        return status;
    }
    out[0] = (tr_tensor_desc){node->in[0].dtype, TR_SHAPE1(node->in[0].shape.dim[0])};
    for (int i = 0; i < TR_RANK_MAX - 1 && attr->dim[i] > 0; i++) {
        out[0].shape.dim[out[0].shape.rank++] = attr->dim[i];
    }
    if (of_sample(out[0].shape) != of_sample(node->in[0].shape)) {
        return tr_fail(err, TR_USAGE, "reshape: %s has other elements than %s",
                       tr__shape_text(out[0].shape, to),
                       tr__shape_text(node->in[0].shape, from));
    }
    *out_count = 1;
    return TR_OK;
}

static int backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    tr_reshape_attr back = {{0}};
    for (int i = 1; i < node->in[0].shape.rank; i++) {
        back.dim[i - 1] = node->in[0].shape.dim[i];
    }
    rules[0] = (tr_rule){
        .op = &tr__op_reshape, .in = {TR_GRAD_OUT(0)}, .out = {TR_GRAD_IN(0)}};
    memcpy(rules[0].attr, &back, sizeof back);
    return 1;
}

const tr_op tr__op_reshape = {
    .name = "reshape",
    .attr_bytes = sizeof(tr_reshape_attr),
    .in_place = 1,
    .infer = infer,
    .backward = backward,
    .reference = &tr__copy_reference,
};
