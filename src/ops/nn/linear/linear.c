#include "ops/nn/linear/backward.h"

#include "ops/nn/relu/relu.h"
#include "ops/operand.h"

#include <string.h>

extern const tr_kernel tr__linear_reference, tr__linear_backward_input_reference,
    tr__linear_backward_weight_reference, tr__linear_backward_bias_reference;

static const tr_linear_attr *attr_of(const tr_op_node *node) {
    return node->attr;
}

static tr_shape with_width(tr_shape shape, int64_t width) {
    shape.dim[shape.rank - 1] = width;
    return shape;
}

static tr_shape weight_shape(const tr_linear_attr *attr, int64_t in, int64_t out) {
    return attr->layout == TR_WEIGHT_IN_OUT ? TR_SHAPE2(in, out) : TR_SHAPE2(out, in);
}

// Checks that `weight` (input 1) is a matrix whose input side ('i') or output side is
// as wide as input 0; gives the other side.
static tr_status other_side(const tr_op_node *node, bool input_side, int64_t *other,
                            tr_error *err) {
    char text[TR_SHAPE_TEXT], x[TR_SHAPE_TEXT];
    tr_status status = tr__operand_real(node, 0, err);
    if (status == TR_OK) {
        status = tr__operand_dtype(node, 1, node->in[0].dtype, err);
    }
    if (status != TR_OK) {
        return status;
    }
    tr_shape weight = node->in[1].shape;
    bool in_first = attr_of(node)->layout == TR_WEIGHT_IN_OUT;
    int side = in_first == input_side ? 0 : 1;
    int64_t width = tr__shape_width(node->in[0].shape);
    if (weight.rank != 2 || weight.dim[side] != width || weight.dim[1 - side] < 1) {
        return tr_fail(
            err, TR_USAGE, "%s: the weight %s (%s) does not fit an operand of shape %s",
            node->op->name, tr__shape_text(weight, text),
            in_first ? "[in, out]" : "[out, in]", tr__shape_text(node->in[0].shape, x));
    }
    *other = weight.dim[1 - side];
    return TR_OK;
}

static tr_status output_infer(const tr_op_node *node, tr_tensor_desc *out,
                              int *out_count, tr_error *err) {
    int64_t width = 0;
    tr_status status = tr__operand_count(node, 2, 3, err);
    if (status == TR_OK) {
        status = other_side(node, true, &width, err);
    }
    if (status == TR_OK && node->in_count > 2 && node->in[2].dtype != TR_NONE) {
        status = tr__operand_shape(node, 2, node->in[0].dtype, TR_SHAPE1(width), err);
    }
    if (status == TR_OK) {
        out[0] =
            (tr_tensor_desc){node->in[0].dtype, with_width(node->in[0].shape, width)};
        *out_count = 1;
    }
    return status;
}

static tr_status input_infer(const tr_op_node *node, tr_tensor_desc *out,
                             int *out_count, tr_error *err) {
    int64_t width = 0;
    tr_status status = tr__operand_count(node, 2, 2, err);
    if (status == TR_OK) {
        status = other_side(node, false, &width, err);
    }
    if (status == TR_OK) {
        out[0] =
            (tr_tensor_desc){node->in[0].dtype, with_width(node->in[0].shape, width)};
        *out_count = 1;
    }
    return status;
}

static tr_status weight_infer(const tr_op_node *node, tr_tensor_desc *out,
                              int *out_count, tr_error *err) {
    tr_status status = tr__operand_count(node, 2, 2, err);
    if (status == TR_OK) {
        status = tr__operand_real(node, 0, err);
    }
    if (status == TR_OK) { // x has dy's shape but for the width
        int64_t in = tr__shape_width(node->in[1].shape);
        status = tr__operand_shape(node, 1, node->in[0].dtype,
                                   with_width(node->in[0].shape, in), err);
    }
    if (status == TR_OK) {
        int64_t width = tr__shape_width(node->in[0].shape);
        int64_t in = tr__shape_width(node->in[1].shape);
        out[0] = (tr_tensor_desc){TR_F32, weight_shape(attr_of(node), in, width)};
        out[1] = (tr_tensor_desc){TR_F32, TR_SHAPE1(width)};
        *out_count = 2;
    }
    return status;
}

static tr_rule rule_of(const tr_op_node *node, const tr_op *op, tr_ref dy, int input) {
    tr_rule rule = {.op = op, .in = {dy, TR_IN(input)}};
    memcpy(rule.attr, node->attr, sizeof(tr_linear_attr));
    return rule;
}

// The weight's gradient comes first: after it the graph may let go of x.
int tr__linear_rules(const tr_op_node *node, tr_linear_ops ops,
                     tr_rule rules[TR_OP_RULES_MAX]) {
    bool bias = node->in_count > 2 && node->in[2].dtype != TR_NONE;
    bool fixed = node->unwanted >> 1 & 1; // the weight
    bool together = ops.together && !fixed;
    int count = 0;
    tr_ref dy = TR_GRAD_OUT(0);
    if (attr_of(node)->activation == TR_ACTIVATION_RELU) {
        rules[count++] = (tr_rule){
            .op = &tr__op_relu_backward,
            .in = {TR_GRAD_OUT(0), TR_OUT(0)},
            .out = {TR_TEMP(0)},
            .temp = {node->out[0]},
        };
        dy = (tr_ref)TR_TEMP(0);
    }
    if (!fixed) {
        rules[count] = rule_of(node, ops.weight, dy, 0);
        rules[count].out[1] =
            bias && together ? (tr_ref)TR_GRAD_IN(2) : (tr_ref)TR_ABSENT;
        rules[count++].out[0] = (tr_ref)TR_GRAD_IN(1);
    }
    if (bias && !together) {
        rules[count] = rule_of(node, ops.bias, dy, 0);
        rules[count++].out[1] = (tr_ref)TR_GRAD_IN(2);
    }
    rules[count] = rule_of(node, ops.input, dy, 1);
    rules[count++].out[0] = (tr_ref)TR_GRAD_IN(0);
    return count;
}

static int backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    const tr_linear_ops ops = {.weight = &tr__op_linear_backward_weight,
                               .bias = &tr__op_linear_backward_bias,
                               .input = &tr__op_linear_backward_input,
                               .together = true};
    return tr__linear_rules(node, ops, rules);
}

// Columns of the weight (way 0), or rows of it: then each rank has a part of the sum
// over the input's elements, to which the bias is added once (Shoeybi et al.,
// Megatron-LM, arXiv 1909.08053, section 3).
static bool split(const tr_op_node *node, int way, int64_t ranks, int64_t rank,
                  tr_split *out) {
    bool in_first = attr_of(node)->layout == TR_WEIGHT_IN_OUT;
    bool rows = way == 1;
    bool bias = node->in_count > 2 && node->in[2].dtype != TR_NONE;
    (void)ranks;
    (void)rank;
    out->in[0] = rows ? tr__cut_last(&node->in[0]) : tr__uncut();
    out->in[1] = tr__cut_along(in_first == rows ? 0 : 1);
    out->in[2] = rows ? tr__uncut() : tr__cut_along(0);
    out->out[0] = rows ? tr__uncut() : tr__cut_last(&node->out[0]);
    out->partial = rows;
    out->partial_gradient = !rows;
    out->added = rows && bias ? 3 : 0;
    return way == 0 || (rows && attr_of(node)->activation == TR_ACTIVATION_NONE);
}

const tr_op tr__op_linear = {
    .name = "linear",
    .attr_bytes = sizeof(tr_linear_attr),
    .split = split,
    .infer = output_infer,
    .backward = backward,
    .recompute_class = {TR_RECOMPUTE_PRODUCT},
    .reference = &tr__linear_reference,
};

const tr_op tr__op_linear_backward_input = {
    .name = "linear_backward_input",
    .attr_bytes = sizeof(tr_linear_attr),
    .infer = input_infer,
    .reference = &tr__linear_backward_input_reference,
};

const tr_op tr__op_linear_backward_weight = {
    .name = "linear_backward_weight",
    .attr_bytes = sizeof(tr_linear_attr),
    .infer = weight_infer,
    .reference = &tr__linear_backward_weight_reference,
};

const tr_op tr__op_linear_backward_bias = {
    .name = "linear_backward_bias",
    .attr_bytes = sizeof(tr_linear_attr),
    .shape_only = 1 << 1,
    .infer = weight_infer,
    .reference = &tr__linear_backward_bias_reference,
};
