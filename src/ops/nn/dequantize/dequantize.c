#include "ops/nn/dequantize/dequantize.h"

#include "base/quantized.h"
#include "ops/operand.h"

#include <string.h>

extern const tr_kernel tr__dequantize_reference;

static tr_status infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                       tr_error *err) {
    tr_dequantize_attr attr;
    char text[TR_SHAPE_TEXT];
    memcpy(&attr, node->attr, sizeof attr);
    tr_status status = tr__operand_count(node, 1, 1, err);
    status = status == TR_OK ? tr__operand_dtype(node, 0, TR_I32, err) : status;
    if (status != TR_OK) {
        return status;
    }
    int64_t rows = 0, bytes = 0;
    for (int i = 0; i < attr.parts; i++) {
        int64_t count = (int64_t)attr.rows[i] * attr.width;
        rows += attr.rows[i];
        bytes += tr__quantized_layout(attr.kind, count).bytes;
    }
    if (node->in[0].shape.rank != 1 || tr_tensor_bytes(node->in[0]) != bytes) {
        return tr_fail(err, TR_USAGE,
                       "%s: %lld rows of %d weights do not fit the operand's shape %s",
                       node->op->name, (long long)rows, attr.width,
                       tr__shape_text(node->in[0].shape, text));
    }
    out[0] = (tr_tensor_desc){attr.real, TR_SHAPE2(rows, attr.width)};
    *out_count = 1;
    return TR_OK;
}

const tr_op tr__op_dequantize = {
    .name = "dequantize",
    .attr_bytes = sizeof(tr_dequantize_attr),
    .no_gradient = 1 << 0,
    .infer = infer,
    .recompute_class = {TR_RECOMPUTE_ALWAYS},
    .reference = &tr__dequantize_reference,
};
