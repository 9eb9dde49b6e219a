// Tensors of which each rank of a group has a part, along the tokens (tr_cut.tokens):
// sequence parallelism (Korthikanti et al., arXiv 2205.05198, section 4.2). Parts are
// of one size, and lie in the whole in the order of ranks. What ranks exchange lies in
// a tensor of the whole's shape, of which each rank has a part, before or behind the
// exchange (plan/passes/exchange.c); the kernels copy. In a group of one rank nothing
// is exchanged.
#ifndef TR_OPS_NN_TOKEN_PARTS_TOKEN_PARTS_H
#define TR_OPS_NN_TOKEN_PARTS_TOKEN_PARTS_H

#include <tranche/extend/op.h>

typedef struct tr_token_parts_attr {
    uint32_t axes; // of the mesh (tr_axis), a bit for each: whose ranks the group are
    // all_gather: what reads the result is shared by the ranks, so each makes a part of
    // the gradient's sum; else all of them make the same gradient.
    uint32_t shared;
    int64_t ranks, rank; // of the group
} tr_token_parts_attr;

// in:  x [B, S / ranks, ...], this rank's part
// out: y [B, S, ...]: all parts. Gradient of x: this rank's part of that of y, or of
//      the sum of that of y over the ranks
extern const tr_op tr__op_all_gather;
// in:  x [B, S, ...]: this rank's part of a sum
// out: y [B, S, ...], of which this rank's part is the sum; the rest means nothing.
//      Gradient of x: that of y
extern const tr_op tr__op_reduce_scatter;
// in:  x [B, S, ...]
// out: y [B, S / ranks, ...]: this rank's part. Gradient of x: all parts of that of y
extern const tr_op tr__op_own_part;

// What all_gather and own_part move: elements [first, first + count) of the whole
// tensor, which is the result, or x.
typedef struct tr_token_part {
    bool gathers; // the result is the whole tensor
    int64_t first, count;
} tr_token_part;

static inline tr_token_part tr__token_part(const tr_op_desc *desc) {
    const tr_token_parts_attr *attr = (const void *)desc->attr;
    int64_t from = tr_shape_count(desc->in[0].shape);
    int64_t to = tr_shape_count(desc->out[0].shape);
    int64_t count = from < to ? from : to;
    return (tr_token_part){from < to, count * attr->rank, count};
}

#endif
