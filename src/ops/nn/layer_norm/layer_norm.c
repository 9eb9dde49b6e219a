#include "ops/nn/layer_norm/layer_norm.h"

#include "ops/operand.h"

#include <string.h>

extern const tr_kernel tr__layer_norm_reference, tr__layer_norm_backward_reference;
extern const tr_kernel tr__residual_norm_reference;

// Input i is a vector as wide as a row of x.
static tr_status check_vector(const tr_op_node *node, int i, tr_shape x,
                              tr_error *err) {
    return tr__operand_shape(node, i, node->in[0].dtype, TR_SHAPE1(tr__shape_width(x)),
                             err);
}

// Input i is rows of real numbers.
static tr_status check_rows(const tr_op_node *node, int i, tr_error *err) {
    char text[TR_SHAPE_TEXT];
    tr_status status = tr__operand_real(node, i, err);
    if (status == TR_OK && node->in[i].shape.rank < 2) {
        return tr_fail(err, TR_USAGE, "%s: input %d has the shape %s, not rows",
                       node->op->name, i, tr__shape_text(node->in[i].shape, text));
    }
    return status;
}

static tr_status layer_norm_infer(const tr_op_node *node, tr_tensor_desc *out,
                                  int *out_count, tr_error *err) {
    tr_status status = tr__operand_count(node, 3, 3, err);
    if (status == TR_OK) {
        status = check_rows(node, 0, err);
    }
    for (int i = 1; i < 3 && status == TR_OK; i++) {
        status = check_vector(node, i, node->in[0].shape, err);
    }
    if (status == TR_OK) {
        out[0] = node->in[0];
        out[1] = (tr_tensor_desc){TR_F32, tr__shape_lead(node->in[0].shape)};
        out[2] = out[1];
        *out_count = 3;
    }
    return status;
}

static tr_status layer_norm_backward_infer(const tr_op_node *node, tr_tensor_desc *out,
                                           int *out_count, tr_error *err) {
    tr_status status = tr__operand_count(node, 5, 5, err);
    if (status == TR_OK) {
        status = check_rows(node, 0, err);
    }
    if (status != TR_OK) {
        return status;
    }
    tr_shape x = node->in[0].shape, lead = tr__shape_lead(x);
    if ((status = tr__operand_shape(node, 1, node->in[0].dtype, x, err)) != TR_OK ||
        (status = tr__operand_shape(node, 2, TR_F32, lead, err)) != TR_OK ||
        (status = tr__operand_shape(node, 3, TR_F32, lead, err)) != TR_OK ||
        (status = check_vector(node, 4, x, err)) != TR_OK) {
        return status;
    }
    out[0] = node->in[1];
    out[1] = tr__param_gradient(node->in[4]);
    out[2] = out[1];
    *out_count = 3;
    return TR_OK;
}

static tr_status residual_norm_infer(const tr_op_node *node, tr_tensor_desc *out,
                                     int *out_count, tr_error *err) {
    const tr_layer_norm_attr *attr = node->attr;
    tr_status status = tr__operand_count(node, 4, 4, err);
    if (status == TR_OK) {
        status = tr__dropout_check(node->op->name, attr->dropout.probability, err);
    }
    if (status == TR_OK) {
        status = check_rows(node, 0, err);
    }
    if (status == TR_OK) {
        status = tr__operand_shape(node, 1, node->in[0].dtype, node->in[0].shape, err);
    }
    for (int i = 2; i < 4 && status == TR_OK; i++) {
        status = check_vector(node, i, node->in[0].shape, err);
    }
    if (status == TR_OK) {
        out[0] = node->in[0];
        out[1] = node->in[0];
        out[2] = (tr_tensor_desc){TR_F32, tr__shape_lead(node->in[0].shape)};
        out[3] = out[2];
        *out_count = 4;
    }
    return status;
}

static int layer_norm_backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    (void)node;
    rules[0] = (tr_rule){
        .op = &tr__op_layer_norm_backward,
        .in = {TR_GRAD_OUT(0), TR_IN(0), TR_OUT(1), TR_OUT(2), TR_IN(1)},
        .out = {TR_GRAD_IN(0), TR_GRAD_IN(1), TR_GRAD_IN(2)},
    };
    return 1;
}

// The gradient of s is what came along the residual path plus what the norm adds.
static int residual_norm_backward(const tr_op_node *node,
                                  tr_rule rules[TR_OP_RULES_MAX]) {
    const tr_layer_norm_attr *attr = node->attr;
    rules[0] = (tr_rule){
        .op = &tr__op_layer_norm_backward,
        .in = {TR_GRAD_OUT(1), TR_OUT(0), TR_OUT(2), TR_OUT(3), TR_IN(2)},
        .out = {TR_GRAD_OUT(0), TR_GRAD_IN(2), TR_GRAD_IN(3)},
    };
    rules[1] = (tr_rule){.in = {TR_GRAD_OUT(0)}, .out = {TR_GRAD_IN(0)}};
    tr__dropout_rule(&attr->dropout, (tr_ref)TR_GRAD_OUT(0), (tr_ref)TR_GRAD_IN(1),
                     &rules[2]);
    return 3;
}

static bool residual_norm_recompute(const tr_op_node *node, tr_rule *rule) {
    *rule = (tr_rule){
        .op = &tr__op_layer_norm,
        .in = {TR_OUT(0), TR_IN(2), TR_IN(3)},
        .out = {TR_OUT(1), TR_OUT(2), TR_OUT(3)},
    };
    memcpy(rule->attr, node->attr, sizeof(tr_layer_norm_attr));
    return true;
}

// Each rank normalizes its tokens.
static bool layer_norm_split(const tr_op_node *node, int way, int64_t ranks,
                             int64_t rank, tr_split *out) {
    (void)rank;
    return way == 0 && tr__split_tokens(node, ranks, out);
}

static bool residual_norm_split(const tr_op_node *node, int way, int64_t ranks,
                                int64_t rank, tr_split *out) {
    tr_layer_norm_attr *attr = (tr_layer_norm_attr *)(void *)out->attr;
    return way == 0 && tr__dropout_split(node, ranks, rank, &attr->dropout, out);
}

const tr_op tr__op_layer_norm = {
    .name = "layer_norm",
    .attr_bytes = sizeof(tr_layer_norm_attr),
    .split = layer_norm_split,
    .infer = layer_norm_infer,
    .backward = layer_norm_backward,
    .recompute_class = {TR_RECOMPUTE_NORM, TR_RECOMPUTE_NORM, TR_RECOMPUTE_NORM},
    .reference = &tr__layer_norm_reference,
};

const tr_op tr__op_layer_norm_backward = {
    .name = "layer_norm_backward",
    .infer = layer_norm_backward_infer,
    .reference = &tr__layer_norm_backward_reference,
};

const tr_op tr__op_residual_norm = {
    .name = "residual_norm",
    .attr_bytes = sizeof(tr_layer_norm_attr),
    .split = residual_norm_split,
    .infer = residual_norm_infer,
    .backward = residual_norm_backward,
    .recompute_class = {TR_RECOMPUTE_RESIDUAL, TR_RECOMPUTE_NORM, TR_RECOMPUTE_NORM,
                        TR_RECOMPUTE_NORM},
    .recompute = residual_norm_recompute,
    .reference = &tr__residual_norm_reference,
};
