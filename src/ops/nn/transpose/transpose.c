#include "ops/nn/transpose/transpose.h"

#include "ops/operand.h"

#include <string.h>

extern const tr_kernel tr__transpose_reference;

static tr_status infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                       tr_error *err) {
    tr_transpose_attr attr;
    char text[TR_SHAPE_TEXT];
    memcpy(&attr, node->attr, sizeof attr);
    tr_status status = tr__operand_count(node, 1, 1, err);
    status = status == TR_OK ? tr__operand_real(node, 0, err) : status;
    if (status != TR_OK) {
        return status;
    }
    tr_shape x = node->in[0].shape;
    if (x.rank != 4 || attr.rows < 1 || x.dim[1] % attr.rows != 0) {
        return tr_fail(err, TR_USAGE,
                       "transpose: x has the shape %s, not [B, outer rows, columns, "
                       "inner] with %d rows",
                       tr__shape_text(x, text), (int)attr.rows);
    }
    out[0] = (tr_tensor_desc){
        node->in[0].dtype,
        TR_SHAPE4(x.dim[0], x.dim[1] / attr.rows * x.dim[2], attr.rows, x.dim[3])};
    *out_count = 1;
    return TR_OK;
}

static int backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    tr_transpose_attr back = {(int32_t)node->in[0].shape.dim[2]};
    rules[0] = (tr_rule){
        .op = &tr__op_transpose, .in = {TR_GRAD_OUT(0)}, .out = {TR_GRAD_IN(0)}};
    memcpy(rules[0].attr, &back, sizeof back);
    return 1;
}

const tr_op tr__op_transpose = {
    .name = "transpose",
    .attr_bytes = sizeof(tr_transpose_attr),
    .infer = infer,
    .backward = backward,
    .recompute_class = {TR_RECOMPUTE_ACTIVATION},
    .reference = &tr__transpose_reference,
};
