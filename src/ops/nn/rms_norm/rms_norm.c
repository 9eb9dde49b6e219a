#include "ops/nn/rms_norm/rms_norm.h"

#include "ops/operand.h"

#include <string.h>

extern const tr_kernel tr__rms_norm_reference, tr__rms_norm_backward_reference;

// That of the reciprocals of roots.
static tr_shape rstd_shape(tr_shape x, const void *attr) {
    tr_rms_norm_sizes s = tr__rms_norm_sizes(x, attr);
    if (s.heads == 1 && s.depth == s.width) {
        return tr__shape_lead(x);
    }
    x.dim[x.rank - 1] = s.heads;
    return x;
}

static tr_status check_heads(const tr_op_node *node, tr_shape x, tr_error *err) {
    char text[TR_SHAPE_TEXT];
    tr_rms_norm_attr a;
    memcpy(&a, node->attr, sizeof a);
    int64_t heads = (int64_t)a.queries + a.keys;
    if (a.depth < 0 || a.queries < 0 || a.keys < 0 ||
        (a.depth > 0 && (heads < 1 || heads * a.depth > tr__shape_width(x)))) {
        return tr_fail(err, TR_USAGE, "%s: no room for %lld heads of %d in rows of %s",
                       node->op->name, (long long)heads, (int)a.depth,
                       tr__shape_text(x, text));
    }
    return TR_OK;
}

static tr_status check_rows(const tr_op_node *node, int i, tr_error *err) {
    char text[TR_SHAPE_TEXT];
    tr_status status = tr__operand_real(node, i, err);
    if (status == TR_OK && node->in[i].shape.rank < 2) {
        return tr_fail(err, TR_USAGE, "%s: input %d has the shape %s, not rows",
                       node->op->name, i, tr__shape_text(node->in[i].shape, text));
    }
    return status == TR_OK ? check_heads(node, node->in[i].shape, err) : status;
}

static tr_status infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                       tr_error *err) {
    tr_status status = tr__operand_count(node, 2, 2, err);
    status = status == TR_OK ? check_rows(node, 0, err) : status;
    if (status == TR_OK) {
        tr_shape weight =
            TR_SHAPE1(tr__rms_norm_sizes(node->in[0].shape, node->attr).weights);
        status = tr__operand_shape(node, 1, node->in[0].dtype, weight, err);
    }
    if (status == TR_OK) {
        out[0] = node->in[0];
        out[1] = (tr_tensor_desc){TR_F32, rstd_shape(node->in[0].shape, node->attr)};
        *out_count = 2;
    }
    return status;
}

static tr_status backward_infer(const tr_op_node *node, tr_tensor_desc *out,
                                int *out_count, tr_error *err) {
    tr_status status = tr__operand_count(node, 4, 4, err);
    status = status == TR_OK ? check_rows(node, 0, err) : status;
    if (status != TR_OK) {
        return status;
    }
    tr_shape x = node->in[0].shape;
    tr_shape weight = TR_SHAPE1(tr__rms_norm_sizes(x, node->attr).weights);
    tr_shape rstd = rstd_shape(x, node->attr);
    tr_dtype real = node->in[0].dtype;
    if ((status = tr__operand_shape(node, 1, real, x, err)) != TR_OK ||
        (status = tr__operand_shape(node, 2, TR_F32, rstd, err)) != TR_OK ||
        (status = tr__operand_shape(node, 3, real, weight, err)) != TR_OK) {
        return status;
    }
    out[0] = node->in[1];
    out[1] = tr__param_gradient(node->in[3]);
    *out_count = 2;
    return TR_OK;
}

static int backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    rules[0] = (tr_rule){.op = &tr__op_rms_norm_backward,
                         .in = {TR_GRAD_OUT(0), TR_IN(0), TR_OUT(1), TR_IN(1)},
                         .out = {TR_GRAD_IN(0), TR_GRAD_IN(1)}};
    memcpy(rules[0].attr, node->attr, sizeof(tr_rms_norm_attr));
    return 1;
}

static bool recompute(const tr_op_node *node, tr_rule *rule) {
    *rule = (tr_rule){.op = &tr__op_rms_norm,
                      .in = {TR_IN(0), TR_IN(1)},
                      .out = {TR_OUT(0), TR_OUT(1)}};
    memcpy(rule->attr, node->attr, sizeof(tr_rms_norm_attr));
    return true;
}

// Heads of queries, heads of keys, and what passes. All ranks have the weights, and
// each makes its heads' part of their gradient.
static bool split_heads(const tr_op_node *node, int64_t ranks, tr_split *out) {
    tr_rms_norm_attr *attr = (tr_rms_norm_attr *)(void *)out->attr;
    int64_t queries = attr->queries, keys = attr->keys;
    int64_t sharers = tr__cut_sharers(keys, ranks); // with the values of their keys
    int last = node->in[0].shape.rank - 1;
    tr_cut cut = {.dim = last}, roots = {.dim = last};
    tr__cut_add_repeated(&cut, queries * attr->depth, 1);
    tr__cut_add_repeated(&cut, keys * attr->depth, sharers);
    tr__cut_add_repeated(
        &cut, node->in[0].shape.dim[last] - (queries + keys) * attr->depth, sharers);
    tr__cut_add_repeated(&roots, queries, 1);
    tr__cut_add_repeated(&roots, keys, sharers);
    out->in[0] = out->out[0] = cut;
    out->in[1] = tr__uncut();
    out->out[1] = roots;
    out->partial_gradient = 1 << 1;
    attr->queries /= (int32_t)ranks;
    attr->keys = (int32_t)(keys * sharers / ranks);
    return queries % ranks == 0 && sharers > 0;
}

// Rows are cut along the tokens, heads are not.
static bool split(const tr_op_node *node, int way, int64_t ranks, int64_t rank,
                  tr_split *out) {
    tr_rms_norm_attr attr;
    memcpy(&attr, node->attr, sizeof attr);
    (void)rank;
    return way == 0 && (attr.depth > 0 ? split_heads(node, ranks, out)
                                       : tr__split_tokens(node, ranks, out));
}

const tr_op tr__op_rms_norm = {
    .name = "rms_norm",
    .attr_bytes = sizeof(tr_rms_norm_attr),
    .split = split,
    .infer = infer,
    .backward = backward,
    .recompute = recompute,
    .reference = &tr__rms_norm_reference,
};

const tr_op tr__op_rms_norm_backward = {
    .name = "rms_norm_backward",
    .attr_bytes = sizeof(tr_rms_norm_attr),
    .infer = backward_infer,
    .reference = &tr__rms_norm_backward_reference,
};
