#include "ops/nn/rope/rope.h"

#include "ops/nn/positions.h"
#include "ops/operand.h"

#include <string.h>

extern const tr_kernel tr__rope_reference, tr__rope_backward_reference;

static tr_status infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                       tr_error *err) {
    char text[TR_SHAPE_TEXT];
    tr_rope_attr attr;
    memcpy(&attr, node->attr, sizeof attr);
    tr_op_node alone = *node; // without the positions
    alone.in_count = 1;
    tr_status status = tr__operand_count(node, 1, 2, err);
    if (status == TR_OK) {
        status = tr__operand_same(&alone, 1, out, out_count, err);
    }
    if (status != TR_OK) {
        return status;
    }
    tr_shape shape = node->in[0].shape;
    if (attr.depth < 2 || attr.depth % 2 != 0) {
        return tr_fail(err, TR_USAGE, "%s: heads of %d elements cannot be halved",
                       node->op->name, (int)attr.depth);
    }
    if (shape.rank != 3 || attr.heads < 1 ||
        shape.dim[2] < (int64_t)attr.heads * attr.depth) {
        return tr_fail(err, TR_USAGE,
                       "%s: the input has the shape %s, not [B, S, W] with room for %d "
                       "heads of %d",
                       node->op->name, tr__shape_text(shape, text), (int)attr.heads,
                       (int)attr.depth);
    }
    return tr__operand_positions(node, 1, shape, err);
}

static int backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    rules[0] = (tr_rule){
        .op = &tr__op_rope_backward,
        .in = {TR_GRAD_OUT(0)},
        .out = {TR_GRAD_IN(0)},
    };
    if (tr__has_positions(node, 1)) {
        rules[0].in[1] = (tr_ref)TR_IN(1);
    }
    memcpy(rules[0].attr, node->attr, sizeof(tr_rope_attr));
    return 1;
}

// The heads of queries, those of keys, and what passes: whole heads for each rank.
static bool split(const tr_op_node *node, int way, int64_t ranks, int64_t rank,
                  tr_split *out) {
    (void)rank;
    tr_rope_attr *attr = (tr_rope_attr *)(void *)out->attr;
    int64_t queries = attr->heads - attr->keys, keys = attr->keys;
    int64_t sharers = tr__cut_sharers(keys, ranks); // with the values of their keys
    tr_cut cut = {.dim = 2};
    tr__cut_add_repeated(&cut, queries * attr->depth, 1);
    tr__cut_add_repeated(&cut, keys * attr->depth, sharers);
    tr__cut_add_repeated(
        &cut, node->in[0].shape.dim[2] - (queries + keys) * attr->depth, sharers);
    out->in[0] = out->out[0] = cut;
    out->in[1] = tr__uncut();
    attr->keys = (int32_t)(keys * sharers / ranks);
    attr->heads = (int32_t)(queries / ranks) + attr->keys;
    return way == 0 && queries % ranks == 0 && sharers > 0;
}

const tr_op tr__op_rope = {
    .name = "rope",
    .attr_bytes = sizeof(tr_rope_attr),
    .split = split,
    .in_place = 1,
    .no_gradient = 1 << 1,
    .positions = 1 << 1,
    .infer = infer,
    .backward = backward,
    .reference = &tr__rope_reference,
};

const tr_op tr__op_rope_backward = {
    .name = "rope_backward",
    .attr_bytes = sizeof(tr_rope_attr),
    .positions = 1 << 1,
    .in_place = 1,
    .infer = infer,
    .reference = &tr__rope_backward_reference,
};
