#include "ops/attention/attention.h"

#include "ops/attention/sizes.h"
#include "ops/operand.h"
#include "ops/positions.h"

extern const tr_kernel tr__attention_reference, tr__attention_backward_reference;

static tr_status check_attr(const tr_op_node *node, tr_error *err) {
    tr_attention_attr attr;
    memcpy(&attr, node->attr, sizeof attr);
    if (attr.heads < 1 || attr.kv_heads < 0 ||
        (attr.kv_heads > 0 && attr.heads % attr.kv_heads != 0)) {
        return tr_fail(err, TR_USAGE,
                       "%s: %d heads of queries cannot share %d heads of keys",
                       node->op->name, (int)attr.heads, (int)attr.kv_heads);
    }
    if (attr.window < 0) {
        return tr_fail(err, TR_USAGE, "%s: a window of %d keys", node->op->name,
                       (int)attr.window);
    }
    if (!(attr.dropout >= 0 && attr.dropout < 1)) {
        return tr_fail(err, TR_USAGE, "%s: dropout %g is not in [0, 1)", node->op->name,
                       (double)attr.dropout);
    }
    return TR_OK;
}

static int64_t all_heads(const tr_attention_attr *attr) {
    return attr->heads +
           2 * (int64_t)(attr->kv_heads > 0 ? attr->kv_heads : attr->heads);
}

// Input i is qkv: rank 3, its last dimension D for each head of q, k and v.
static tr_status check_qkv(const tr_op_node *node, int i, tr_error *err) {
    char text[TR_SHAPE_TEXT];
    tr_status status = check_attr(node, err);
    if (status == TR_OK) {
        status = tr__operand_real(node, i, err);
    }
    if (status != TR_OK) {
        return status;
    }
    tr_attention_attr attr;
    memcpy(&attr, node->attr, sizeof attr);
    tr_shape shape = node->in[i].shape;
    if (shape.rank != 3 || shape.dim[2] % all_heads(&attr) != 0) {
        return tr_fail(err, TR_USAGE,
                       "%s: input %d has the shape %s, not [B, S, W] with W a multiple "
                       "of the %d heads of queries, keys and values",
                       node->op->name, i, tr__shape_text(shape, text),
                       (int)all_heads(&attr));
    }
    return TR_OK;
}

static tr_shape y_shape(tr_shape qkv, const void *attr) {
    tr_attention_sizes s = tr__attention_sizes(qkv, attr);
    return TR_SHAPE3(qkv.dim[0], qkv.dim[1], s.width);
}

static tr_shape lse_shape(tr_shape qkv, const void *attr) {
    tr_attention_sizes s = tr__attention_sizes(qkv, attr);
    return TR_SHAPE3(qkv.dim[0], s.heads, s.context);
}

static tr_status attention_infer(const tr_op_node *node, tr_tensor_desc *out,
                                 int *out_count, tr_error *err) {
    tr_status status = tr__operand_count(node, 1, 2, err);
    if (status == TR_OK) {
        status = check_qkv(node, 0, err);
    }
    if (status == TR_OK) {
        status = tr__operand_positions(node, 1, node->in[0].shape, err);
    }
    if (status == TR_OK) {
        tr_shape qkv = node->in[0].shape;
        out[0] = (tr_tensor_desc){node->in[0].dtype, y_shape(qkv, node->attr)};
        out[1] = (tr_tensor_desc){TR_F32, lse_shape(qkv, node->attr)};
        *out_count = 2;
    }
    return status;
}

static tr_status attention_backward_infer(const tr_op_node *node, tr_tensor_desc *out,
                                          int *out_count, tr_error *err) {
    tr_status status = tr__operand_count(node, 4, 5, err);
    if (status == TR_OK) {
        status = check_qkv(node, 1, err);
    }
    if (status == TR_OK) {
        status = tr__operand_positions(node, 4, node->in[1].shape, err);
    }
    if (status != TR_OK) {
        return status;
    }
    tr_shape qkv = node->in[1].shape;
    tr_shape y = y_shape(qkv, node->attr);
    tr_shape want[4] = {y, qkv, y, lse_shape(qkv, node->attr)};
    for (int i = 0; i < 4 && status == TR_OK; i++) {
        tr_dtype dtype = i == 3 ? TR_F32 : node->in[1].dtype;
        status = tr__operand_shape(node, i, dtype, want[i], err);
    }
    if (status == TR_OK) {
        out[0] = node->in[1];
        *out_count = 1;
    }
    return status;
}

static int attention_backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    rules[0] = (tr_rule){
        .op = &tr__op_attention_backward,
        .in = {TR_GRAD_OUT(0), TR_IN(0), TR_OUT(0), TR_OUT(1)},
        .out = {TR_GRAD_IN(0)},
    };
    if (tr__has_positions(node, 1)) {
        rules[0].in[4] = (tr_ref)TR_IN(1);
    }
    memcpy(rules[0].attr, node->attr, sizeof(tr_attention_attr));
    return 1;
}

// The operations of one product of queries and keys, over the pairs that are seen: of
// one head, (S + 1) S / 2 pairs of 2 D, less those that the window leaves out.
static double product(tr_shape qkv, const void *attr) {
    tr_attention_sizes s = tr__attention_sizes(qkv, attr);
    double all = (double)s.context, out = all - (double)s.window;
    double pairs = (all * (all + 1) - out * (out + 1)) / 2;
    return 2 * pairs * (double)s.width * (double)s.batch;
}

// Two products in the forward, five in the backward.
void tr__attention_cost(const tr_op_desc *desc, tr_cost *cost) {
    tr__desc_cost(desc, 0, cost);
    cost->flops = 2 * product(desc->in[0].shape, desc->attr);
}

void tr__attention_backward_cost(const tr_op_desc *desc, tr_cost *cost) {
    tr__desc_cost(desc, 0, cost);
    cost->flops = 5 * product(desc->in[1].shape, desc->attr);
}

tr_status tr__attention_check(const tr_op_node *node, tr_error *err) {
    return check_qkv(node, 0, err);
}

const tr_op tr__op_attention = {
    .name = "attention",
    .attr_bytes = sizeof(tr_attention_attr),
    .no_gradient = 1 << 1,
    .positions = 1 << 1,
    .infer = attention_infer,
    .backward = attention_backward,
    .recompute_class = {TR_RECOMPUTE_ATTENTION, TR_RECOMPUTE_ATTENTION},
    .reference = &tr__attention_reference,
};

const tr_op tr__op_attention_backward = {
    .name = "attention_backward",
    .attr_bytes = sizeof(tr_attention_attr),
    .positions = 1 << 4,
    .infer = attention_backward_infer,
    .reference = &tr__attention_backward_reference,
};
