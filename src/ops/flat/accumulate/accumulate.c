#include "ops/flat/accumulate/accumulate.h"

#include "base/half.h"
#include "ops/operand.h"

extern const tr_kernel tr__accumulate_reference;

static tr_status infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                       tr_error *err) {
    const tr_accumulate_attr *attr = node->attr;
    tr_dtype to = (tr_dtype)attr->to;
    tr_status status = tr__operand_count(node, 1, 1, err);
    bool sums = node->in[0].dtype == to;
    if (status == TR_OK) {
        status = tr__operand_dtype(node, 0, sums ? to : TR_F32, err);
    }
    if (status == TR_OK && to != TR_F32 && to != TR_I64 && !tr__dtype_is_half(to)) {
        status = tr_fail(err, TR_USAGE, "%s: sums of %s are not possible",
                         node->op->name, tr_dtype_name(to));
    }
    if (status == TR_OK) {
        out[0] = (tr_tensor_desc){to, node->in[0].shape};
        out[1] = (tr_tensor_desc){TR_F64, TR_SHAPE1(TR_ACCUMULATE_COUNTS)};
        *out_count = to == TR_I64 && !sums ? 2 : 1;
    }
    return status;
}

const tr_op tr__op_accumulate = {
    .name = "accumulate",
    .attr_bytes = sizeof(tr_accumulate_attr),
    .infer = infer,
    .reference = &tr__accumulate_reference,
};
