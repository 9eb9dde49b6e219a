#include "ops/flat/seed/seed.h"

#include "base/half.h"
#include "ops/operand.h"

static tr_status infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                       tr_error *err) {
    const tr_seed_attr *attr = node->attr;
    tr_dtype to = (tr_dtype)attr->to;
    tr_status status = tr__operand_count(node, 1, 1, err);
    if (status == TR_OK) {
        status = tr__operand_real(node, 0, err);
    }
    if (status == TR_OK && !tr__dtype_is_real(to)) {
        status = tr_fail(err, TR_USAGE, "%s: to %s is not possible", node->op->name,
                         tr_dtype_name(to));
    }
    if (status == TR_OK && attr->room < tr_shape_count(node->in[0].shape)) {
        status = tr_fail(err, TR_USAGE, "%s: %lld elements have no room in %lld",
                         node->op->name, (long long)tr_shape_count(node->in[0].shape),
                         (long long)attr->room);
    }
    if (status == TR_OK) {
        out[0] = (tr_tensor_desc){to, TR_SHAPE1(attr->room)};
        *out_count = 1;
    }
    return status;
}

extern const tr_kernel tr__seed_reference;

const tr_op tr__op_seed = {
    .name = "seed",
    .attr_bytes = sizeof(tr_seed_attr),
    .infer = infer,
    .reference = &tr__seed_reference,
};
