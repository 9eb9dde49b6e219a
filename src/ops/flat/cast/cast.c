#include "ops/flat/cast/cast.h"

#include "base/half.h"
#include "ops/operand.h"

#include <string.h>

static tr_status infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                       tr_error *err) {
    const tr_cast_attr *attr = node->attr;
    tr_dtype to = (tr_dtype)attr->to;
    tr_status status = tr__operand_count(node, 1, 1, err);
    if (status == TR_OK) {
        status = tr__operand_real(node, 0, err);
    }
    if (status == TR_OK && to != TR_F32 && !tr__dtype_is_half(to)) {
        status = tr_fail(err, TR_USAGE, "%s: to %s is not possible", node->op->name,
                         tr_dtype_name(to));
    }
    if (status == TR_OK) {
        out[0] = (tr_tensor_desc){to, node->in[0].shape};
        *out_count = 1;
    }
    return status;
}

static int backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    tr_cast_attr back = {(int32_t)node->in[0].dtype};
    rules[0] =
        (tr_rule){.op = &tr__op_cast, .in = {TR_GRAD_OUT(0)}, .out = {TR_GRAD_IN(0)}};
    memcpy(rules[0].attr, &back, sizeof back);
    return 1;
}

void tr__cast_cost(const tr_op_desc *desc, tr_cost *cost) {
    tr__desc_cost(desc, 0, cost);
}

// In f32 it is a copy.
static bool copy_supports(const tr_op_desc *desc) {
    return tr__desc_f32(desc);
}

static void copy(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const float *x = launch->in[0];
    float *y = launch->out[0];
    for (int64_t i = 0; i < tr_shape_count(desc->in[0].shape); i++) {
        y[i] = launch->accumulate & 1 ? y[i] + x[i] : x[i];
    }
}

static const tr_kernel cast_reference = {
    .name = "cast.reference",
    .supports = copy_supports,
    .cost = tr__cast_cost,
    .launch = copy,
};

const tr_op tr__op_cast = {
    .name = "cast",
    .attr_bytes = sizeof(tr_cast_attr),
    .infer = infer,
    .backward = backward,
    .reference = &cast_reference,
};
