#include "ops/nn/bias/bias.h"

#include "ops/nn/linear/linear.h"
#include "ops/operand.h"

#include <string.h>

extern const tr_kernel tr__bias_reference;

static tr_status infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                       tr_error *err) {
    tr_status status = tr__operand_count(node, 2, 2, err);
    status = status == TR_OK ? tr__operand_real(node, 0, err) : status;
    if (status == TR_OK) {
        int64_t width = tr__shape_width(node->in[0].shape);
        status = tr__operand_shape(node, 1, node->in[0].dtype, TR_SHAPE1(width), err);
    }
    if (status == TR_OK) {
        out[0] = node->in[0];
        *out_count = 1;
    }
    return status;
}

// The sums of columns are those of a linear layer's bias.
static int backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    const tr_linear_attr attr = {TR_WEIGHT_OUT_IN, TR_ACTIVATION_NONE};
    (void)node;
    rules[0] = (tr_rule){.op = &tr__op_linear_backward_bias,
                         .in = {TR_GRAD_OUT(0), TR_IN(0)},
                         .out = {TR_ABSENT, TR_GRAD_IN(1)}};
    memcpy(rules[0].attr, &attr, sizeof attr);
    rules[1] = (tr_rule){.in = {TR_GRAD_OUT(0)}, .out = {TR_GRAD_IN(0)}};
    return 2;
}

// Columns, or tokens.
static bool split(const tr_op_node *node, int way, int64_t ranks, int64_t rank,
                  tr_split *out) {
    return tr__split_elements(node, way, ranks, rank, out);
}

const tr_op tr__op_bias = {
    .name = "bias",
    .split = split,
    .in_place = 1,
    .infer = infer,
    .backward = backward,
    .reference = &tr__bias_reference,
};
