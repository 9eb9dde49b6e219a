// Attention that goes on from the keys and values of earlier positions.
#include "ops/nn/attention/sizes.h"
#include "ops/operand.h"

extern const tr_kernel tr__attention_cached_reference;

tr_tensor_desc tr__attention_cache(tr_tensor_desc qkv, const void *attr,
                                   int64_t positions) {
    tr_attention_sizes s = tr__attention_sizes(qkv.shape, attr);
    return (tr_tensor_desc){
        qkv.dtype, TR_SHAPE4(qkv.shape.dim[0], 2 * s.pairs, positions, s.depth)};
}

// A window's keys, and those that a piece adds before its first query is done.
int64_t tr__attention_cache_room(const tr_attention_attr *attr, int64_t positions,
                                 int64_t piece) {
    if (attr->window <= 0 || attr->window >= positions) {
        return positions;
    }
    int64_t ring = tr__round_up(attr->window + piece - 1, TR_ATTENTION_RING);
    return tr__min_i64(ring, positions);
}

static tr_status infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                       tr_error *err) {
    tr_status status = tr__operand_count(node, 2, 2, err);
    if (status == TR_OK) {
        status = tr__attention_check(node, 0, err);
    }
    if (status == TR_OK) {
        int64_t positions = node->in[1].shape.dim[2];
        tr_tensor_desc cache = tr__attention_cache(node->in[0], node->attr, positions);
        status = tr__operand_shape(node, 1, cache.dtype, cache.shape, err);
    }
    if (status != TR_OK) {
        return status;
    }
    tr_shape qkv = node->in[0].shape;
    tr_attention_sizes s = tr__attention_sizes(qkv, node->attr);
    out[0] =
        (tr_tensor_desc){node->in[0].dtype, TR_SHAPE3(qkv.dim[0], qkv.dim[1], s.width)};
    out[1] = node->in[1];
    *out_count = 2;
    return TR_OK;
}

const tr_op tr__op_attention_cached = {
    .name = "attention_cached",
    .attr_bytes = sizeof(tr_attention_attr),
    .infer = infer,
    .reference = &tr__attention_cached_reference,
};
