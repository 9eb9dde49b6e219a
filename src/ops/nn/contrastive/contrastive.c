#include "ops/nn/contrastive/contrastive.h"

#include "ops/operand.h"

#include <string.h>

static tr_status infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                       tr_error *err) {
    tr_status status = tr__operand_count(node, 2, 2, err);
    if (status == TR_OK && node->in[0].dtype != TR_F32) {
        return tr_fail(err, TR_USAGE,
                       "%s: embeddings of texts are computed in f32 alone, not in %s: "
                       "leave out bf16 and fp16",
                       node->op->name, tr_dtype_name(node->in[0].dtype));
    }
    status = status == TR_OK ? tr__operand_real(node, 0, err) : status;
    if (status == TR_OK) {
        status =
            tr__operand_shape(node, 1, TR_I32, tr__shape_lead(node->in[0].shape), err);
    }
    if (status == TR_OK) {
        out[0] = (tr_tensor_desc){TR_F64, TR_SHAPE1(TR_SUMS)};
        *out_count = 1;
    }
    return status;
}

const tr_op tr__op_contrastive = {
    .name = "contrastive",
    .attr_bytes = sizeof(tr_contrastive_attr),
    .flags = TR_OP_LOSS,
    .no_gradient = 1 << 1,
    .infer = infer,
};
