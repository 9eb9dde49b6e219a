#include "ops/flat/zero/zero.h"

#include "ops/operand.h"

#include <string.h>

extern const tr_kernel tr__zero_kernel;

static tr_status infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                       tr_error *err) {
    const tr_zero_attr *attr = node->attr;
    tr_status status = tr__operand_count(node, 0, 0, err);
    if (status == TR_OK) {
        out[0] = (tr_tensor_desc){(tr_dtype)attr->dtype, TR_SHAPE1(attr->count)};
        *out_count = 1;
    }
    return status;
}

// Zero bytes are zero in every type.
static bool supports(const tr_op_desc *desc) {
    return desc->out[0].dtype != TR_NONE;
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    *out = (tr_cost){.bytes = (double)tr_tensor_bytes(desc->out[0])};
}

static void launch(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    memset(launch->out[0], 0, (size_t)tr_tensor_bytes(desc->out[0]));
}

const tr_kernel tr__zero_kernel = {
    .name = "zero.cpu",
    .supports = supports,
    .cost = cost,
    .launch = launch,
};

const tr_op tr__op_zero = {
    .name = "zero",
    .attr_bytes = sizeof(tr_zero_attr),
    .infer = infer,
    .reference = &tr__zero_kernel,
};
