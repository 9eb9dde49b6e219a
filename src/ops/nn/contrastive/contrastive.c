#include "ops/nn/contrastive/contrastive.h"

#include "ops/nn/contrastive/operands.h"

#include <string.h>

extern const tr_kernel tr__contrastive_reference, tr__contrastive_backward_reference,
    tr__contrastive_pool_reference, tr__contrastive_pool_backward_reference;

static tr_status check_x(const tr_op_node *node, int i, tr_error *err) {
    char text[TR_SHAPE_TEXT];
    if (node->in[i].dtype == TR_BF16 || node->in[i].dtype == TR_F16) {
        return tr_fail(err, TR_USAGE,
                       "%s: embeddings of texts are computed in f32 alone, not in %s: "
                       "leave out bf16 and fp16",
                       node->op->name, tr_dtype_name(node->in[i].dtype));
    }
    tr_status status = tr__operand_dtype(node, i, TR_F32, err);
    return status == TR_OK && node->in[i].shape.rank != 3
               ? tr_fail(err, TR_USAGE, "%s: x has the shape %s, not [B, texts, C]",
                         node->op->name, tr__shape_text(node->in[i].shape, text))
               : status;
}

static tr_shape pool_shape(int64_t groups, tr_shape x) {
    return TR_SHAPE3(groups, x.dim[1], x.dim[2] + TR_TEXT_MARK);
}

static bool has(const tr_op_node *node, int input) {
    return node->in_count > input && node->in[input].dtype != TR_NONE;
}

static tr_status check_texts(const tr_op_node *node, tr_error *err) {
    tr_status status = check_x(node, PAIRS_X, err);
    return status == TR_OK
               ? tr__operand_shape(node, PAIRS_TARGETS, TR_I32,
                                   tr__shape_lead(node->in[PAIRS_X].shape), err)
               : status;
}

// One number, which has no dimension.
static tr_status check_scale(const tr_op_node *node, tr_error *err) {
    char text[TR_SHAPE_TEXT];
    tr_tensor_desc scale = node->in[PAIRS_SCALE];
    return !has(node, PAIRS_SCALE) || (scale.dtype == TR_F32 && scale.shape.rank == 0)
               ? TR_OK
               : tr_fail(err, TR_USAGE, "%s: the scale is %s %s, not F32 []",
                         node->op->name, tr_dtype_name(scale.dtype),
                         tr__shape_text(scale.shape, text));
}

static tr_status check(const tr_op_node *node, tr_error *err) {
    tr_status status = tr__operand_count(node, 2, 4, err);
    status = status == TR_OK ? check_texts(node, err) : status;
    status = status == TR_OK ? check_scale(node, err) : status;
    if (status != TR_OK || !has(node, PAIRS_POOL)) {
        return status;
    }
    int64_t texts = node->in[PAIRS_X].shape.dim[1];
    if (texts < 2 || texts > 3) {
        return tr_fail(err, TR_USAGE,
                       "%s: groups of %lld texts; they have an anchor, a positive and "
                       "perhaps a negative",
                       node->op->name, (long long)texts);
    }
    tr_shape pool = pool_shape(node->in[PAIRS_POOL].shape.dim[0], node->in[0].shape);
    return tr__operand_shape(node, PAIRS_POOL, TR_F32, pool, err);
}

static tr_status infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                       tr_error *err) {
    return tr__infer_loss(check(node, err), out, out_count);
}

static tr_status backward_infer(const tr_op_node *node, tr_tensor_desc *out,
                                int *out_count, tr_error *err) {
    tr_status status = check(node, err);
    if (status == TR_OK) {
        out[PAIRS_DX] = node->in[PAIRS_X];
        out[PAIRS_DPOOL] =
            has(node, PAIRS_POOL) ? node->in[PAIRS_POOL] : (tr_tensor_desc){0};
        out[PAIRS_DSCALE] =
            has(node, PAIRS_SCALE) ? node->in[PAIRS_SCALE] : (tr_tensor_desc){0};
        out[PAIRS_SUMS] = tr__loss_sums;
        *out_count = 4;
    }
    return status;
}

static int backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    if (!has(node, PAIRS_POOL)) {
        return 0; // it is not trained
    }
    rules[0] =
        (tr_rule){.op = &tr__op_contrastive_backward,
                  .in = {TR_IN(PAIRS_X), TR_IN(PAIRS_TARGETS), TR_IN(PAIRS_POOL)},
                  .out = {TR_GRAD_IN(PAIRS_X), TR_GRAD_IN(PAIRS_POOL)}};
    rules[0].out[PAIRS_SUMS] = (tr_ref)TR_OUT(0);
    if (has(node, PAIRS_SCALE)) {
        rules[0].in[PAIRS_SCALE] = (tr_ref)TR_IN(PAIRS_SCALE);
        rules[0].out[PAIRS_DSCALE] = (tr_ref)TR_GRAD_IN(PAIRS_SCALE);
    }
    memcpy(rules[0].attr, node->attr, sizeof(tr_contrastive_attr));
    return 1;
}

static tr_status pool_infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                            tr_error *err) {
    tr_contrastive_pool_attr attr;
    memcpy(&attr, node->attr, sizeof attr);
    tr_status status = tr__operand_count(node, 2, 2, err);
    status = status == TR_OK ? check_texts(node, err) : status;
    if (status == TR_OK) {
        out[0] = (tr_tensor_desc){TR_F32, pool_shape(attr.groups, node->in[0].shape)};
        *out_count = 1;
    }
    return status;
}

static tr_status pool_backward_infer(const tr_op_node *node, tr_tensor_desc *out,
                                     int *out_count, tr_error *err) {
    tr_status status = tr__operand_count(node, 2, 2, err);
    status = status == TR_OK ? check_x(node, 1, err) : status;
    status = status == TR_OK
                 ? tr__operand_shape(
                       node, 0, TR_F32,
                       pool_shape(node->in[0].shape.dim[0], node->in[1].shape), err)
                 : status;
    if (status == TR_OK) {
        out[0] = node->in[1];
        *out_count = 1;
    }
    return status;
}

static int pool_backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    (void)node;
    rules[0] = (tr_rule){.op = &tr__op_contrastive_pool_backward,
                         .in = {TR_GRAD_OUT(0), TR_IN(0)},
                         .out = {TR_GRAD_IN(0)}};
    return 1;
}

const tr_op tr__op_contrastive = {
    .name = "contrastive",
    .attr_bytes = sizeof(tr_contrastive_attr),
    .flags = TR_OP_LOSS,
    .no_gradient = 1 << PAIRS_TARGETS,
    .train_only = 1 << PAIRS_POOL,
    .infer = infer,
    .backward = backward,
    .reference = &tr__contrastive_reference,
};

const tr_op tr__op_contrastive_backward = {
    .name = "contrastive_backward",
    .attr_bytes = sizeof(tr_contrastive_attr),
    .infer = backward_infer,
    .reference = &tr__contrastive_backward_reference,
};

const tr_op tr__op_contrastive_pool = {
    .name = "contrastive_pool",
    .attr_bytes = sizeof(tr_contrastive_pool_attr),
    .no_gradient = 1 << 1,
    .wave_outputs = 1,
    .infer = pool_infer,
    .backward = pool_backward,
    .reference = &tr__contrastive_pool_reference,
};

const tr_op tr__op_contrastive_pool_backward = {
    .name = "contrastive_pool_backward",
    .shape_only = 1 << 1,
    .infer = pool_backward_infer,
    .reference = &tr__contrastive_pool_backward_reference,
};
