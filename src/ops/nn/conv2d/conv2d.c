#include "ops/nn/conv2d/conv2d.h"

#include "ops/operand.h"

#include <string.h>

extern const tr_kernel tr__conv2d_reference, tr__conv2d_backward_input_reference,
    tr__conv2d_backward_weight_reference;

// Input i is of rank 4, and of the first one's real type.
static tr_status check_rank(const tr_op_node *node, int i, tr_error *err) {
    char text[TR_SHAPE_TEXT];
    tr_status status = tr__operand_real(node, 0, err);
    status =
        status == TR_OK ? tr__operand_dtype(node, i, node->in[0].dtype, err) : status;
    if (status == TR_OK && node->in[i].shape.rank != 4) {
        return tr_fail(err, TR_USAGE, "%s: input %d has the shape %s, not four sides",
                       node->op->name, i, tr__shape_text(node->in[i].shape, text));
    }
    return status;
}

static tr_status check_attr(const tr_op_node *node, tr_error *err) {
    const tr_conv2d_attr *attr = node->attr;
    for (int i = 0; i < 2; i++) {
        if (attr->stride[i] < 1 || attr->padding[i] < 0 || attr->dilation[i] < 1) {
            return tr_fail(err, TR_USAGE, "%s: stride %d, padding %d and dilation %d",
                           node->op->name, attr->stride[i], attr->padding[i],
                           attr->dilation[i]);
        }
    }
    if (attr->groups < 1) {
        return tr_fail(err, TR_USAGE, "%s: %d groups", node->op->name, attr->groups);
    }
    return TR_OK;
}

// How many windows of `kernel` there are along side `i`, the height or the width.
static int64_t windows(const tr_conv2d_attr *attr, int i, int64_t side,
                       int64_t kernel) {
    int64_t room =
        side + 2 * (int64_t)attr->padding[i] - attr->dilation[i] * (kernel - 1) - 1;
    return room < 0 ? 0 : room / attr->stride[i] + 1;
}

// The shape of y.
static tr_status output_shape(const tr_op_node *node, tr_shape x, tr_shape weight,
                              tr_shape *y, tr_error *err) {
    const tr_conv2d_attr *attr = node->attr;
    char text[TR_SHAPE_TEXT], kernel[TR_SHAPE_TEXT];
    *y = TR_SHAPE4(x.dim[0], windows(attr, 0, x.dim[1], weight.dim[2]),
                   windows(attr, 1, x.dim[2], weight.dim[3]), weight.dim[0]);
    bool fits =
        x.dim[3] == weight.dim[1] * attr->groups && weight.dim[0] % attr->groups == 0;
    if (!fits || y->dim[1] < 1 || y->dim[2] < 1) {
        return tr_fail(err, TR_USAGE,
                       "%s: the weight %s ([out, in / groups, height, width]) does not "
                       "fit an image of shape %s in %d groups",
                       node->op->name, tr__shape_text(weight, kernel),
                       tr__shape_text(x, text), attr->groups);
    }
    return TR_OK;
}

static tr_status output_infer(const tr_op_node *node, tr_tensor_desc *out,
                              int *out_count, tr_error *err) {
    tr_shape y;
    tr_status status = tr__operand_count(node, 2, 3, err);
    status = status == TR_OK ? check_attr(node, err) : status;
    status = status == TR_OK ? check_rank(node, 0, err) : status;
    status = status == TR_OK ? check_rank(node, 1, err) : status;
    if (status == TR_OK) {
        status = output_shape(node, node->in[0].shape, node->in[1].shape, &y, err);
    }
    if (status == TR_OK && node->in_count > 2 && node->in[2].dtype != TR_NONE) {
        status =
            tr__operand_shape(node, 2, node->in[0].dtype, TR_SHAPE1(y.dim[3]), err);
    }
    if (status == TR_OK) {
        out[0] = (tr_tensor_desc){node->in[0].dtype, y};
        *out_count = 1;
    }
    return status;
}

static tr_status input_infer(const tr_op_node *node, tr_tensor_desc *out,
                             int *out_count, tr_error *err) {
    const tr_conv2d_attr *attr = node->attr;
    tr_shape y;
    tr_status status = tr__operand_count(node, 2, 2, err);
    status = status == TR_OK ? check_attr(node, err) : status;
    status = status == TR_OK ? check_rank(node, 0, err) : status;
    status = status == TR_OK ? check_rank(node, 1, err) : status;
    if (status != TR_OK) {
        return status;
    }
    tr_shape x = TR_SHAPE4(node->in[0].shape.dim[0], attr->height, attr->width,
                           node->in[1].shape.dim[1] * attr->groups);
    status = output_shape(node, x, node->in[1].shape, &y, err);
    if (status == TR_OK) {
        status = tr__operand_shape(node, 0, node->in[0].dtype, y, err);
    }
    if (status == TR_OK) {
        out[0] = (tr_tensor_desc){node->in[0].dtype, x};
        *out_count = 1;
    }
    return status;
}

static tr_status weight_infer(const tr_op_node *node, tr_tensor_desc *out,
                              int *out_count, tr_error *err) {
    tr_shape y;
    tr_status status = tr__operand_count(node, 3, 3, err);
    status = status == TR_OK ? check_attr(node, err) : status;
    for (int i = 0; i < 3 && status == TR_OK; i++) {
        status = check_rank(node, i, err);
    }
    if (status == TR_OK) {
        status = output_shape(node, node->in[1].shape, node->in[2].shape, &y, err);
    }
    if (status == TR_OK) {
        status = tr__operand_shape(node, 0, node->in[0].dtype, y, err);
    }
    if (status == TR_OK) {
        out[0] = tr__param_gradient(node->in[2]);
        out[1] = (tr_tensor_desc){TR_F32, TR_SHAPE1(y.dim[3])};
        *out_count = 2;
    }
    return status;
}

// The weight's gradient comes first: after it the graph may let go of x.
static int backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    bool bias = node->in_count > 2 && node->in[2].dtype != TR_NONE;
    tr_conv2d_attr attr = *(const tr_conv2d_attr *)node->attr;
    attr.height = (int)node->in[0].shape.dim[1];
    attr.width = (int)node->in[0].shape.dim[2];
    rules[0] = (tr_rule){
        .op = &tr__op_conv2d_backward_weight,
        .in = {TR_GRAD_OUT(0), TR_IN(0), TR_IN(1)},
        .out = {TR_GRAD_IN(1), TR_ABSENT},
    };
    if (bias) {
        rules[0].out[1] = (tr_ref)TR_GRAD_IN(2);
    }
    rules[1] = (tr_rule){
        .op = &tr__op_conv2d_backward_input,
        .in = {TR_GRAD_OUT(0), TR_IN(1)},
        .out = {TR_GRAD_IN(0)},
    };
    memcpy(rules[0].attr, &attr, sizeof attr);
    memcpy(rules[1].attr, &attr, sizeof attr);
    return 2;
}

const tr_op tr__op_conv2d = {
    .name = "conv2d",
    .attr_bytes = sizeof(tr_conv2d_attr),
    .infer = output_infer,
    .backward = backward,
    .reference = &tr__conv2d_reference,
};

const tr_op tr__op_conv2d_backward_input = {
    .name = "conv2d_backward_input",
    .attr_bytes = sizeof(tr_conv2d_attr),
    .infer = input_infer,
    .reference = &tr__conv2d_backward_input_reference,
};

const tr_op tr__op_conv2d_backward_weight = {
    .name = "conv2d_backward_weight",
    .attr_bytes = sizeof(tr_conv2d_attr),
    .shape_only = 1 << 2,
    .infer = weight_infer,
    .reference = &tr__conv2d_backward_weight_reference,
};
