#include "ops/nn/attention/attention.h"

#include "ops/nn/attention/sizes.h"
#include "ops/nn/positions.h"
#include "ops/operand.h"

extern const tr_kernel tr__attention_reference, tr__attention_backward_reference;

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
        status = tr__attention_check(node, 0, err);
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
        status = tr__attention_check(node, 1, err);
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

// Heads, and of queries that share keys all with theirs; or, where there are more ranks
// than heads of keys, some of them, each rank with all of that head.
static bool attention_split(const tr_op_node *node, int way, int64_t ranks,
                            int64_t rank, tr_split *out) {
    tr_attention_sizes s = tr__attention_sizes(node->in[0].shape, node->attr);
    tr_attention_attr *attr = (tr_attention_attr *)(void *)out->attr;
    int64_t pairs = s.pairs * s.depth, sharers = tr__cut_sharers(s.pairs, ranks);
    out->in[0] = (tr_cut){.dim = 2,
                          .blocks = 3,
                          .block = {s.width, pairs, pairs},
                          .repeat = {1, sharers, sharers}};
    out->in[1] = tr__uncut();
    out->out[0] = (tr_cut){.dim = 2, .blocks = 1, .block = {s.width}};
    out->out[1] = (tr_cut){.dim = 1, .blocks = 1, .block = {s.heads}};
    attr->heads /= (int32_t)ranks;
    attr->kv_heads = (int32_t)(attr->kv_heads * sharers / ranks);
    attr->first_head += (int32_t)rank * attr->heads;
    return way == 0 && s.heads % ranks == 0 && sharers > 0;
}

const tr_op tr__op_attention = {
    .name = "attention",
    .attr_bytes = sizeof(tr_attention_attr),
    .split = attention_split,
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
