// Dropout (Srivastava et al. 2014), inverted: y = x * mask / (1 - p).
#ifndef TR_OPS_NN_DROPOUT_DROPOUT_H
#define TR_OPS_NN_DROPOUT_DROPOUT_H

#include <tranche/extend/op.h>

typedef struct tr_dropout_attr {
    float probability; // [0, 1)
    uint32_t draw_id;  // of this draw within the unit
    // x is part `part` of as many of the micro-batch's tokens (tr_cut.tokens), and each
    // element is drawn as in the whole; 0: x is all of it.
    int32_t parts, part;
} tr_dropout_attr;

// Elements of a whole sample, of which x has a part, and where x begins in the whole.
typedef struct tr_dropout_place {
    int64_t per_sample, first;
} tr_dropout_place;

static inline tr_dropout_place tr__dropout_place(const tr_dropout_attr *attr,
                                                 tr_shape x) {
    int64_t count = tr_shape_count(x), parts = attr->parts > 0 ? attr->parts : 1;
    return (tr_dropout_place){count / x.dim[0] * parts, count * attr->part};
}

// in: x [B, ...]   out: y [B, ...]. Its backward is itself on the gradient.
extern const tr_op tr__op_dropout;

// For shape rules of ops that drop: TR_USAGE unless probability is in [0, 1).
tr_status tr__dropout_check(const char *op_name, float probability, tr_error *err);
// Splits along the tokens; *drops: in the attributes of the rank's node.
bool tr__dropout_split(const tr_op_node *node, int64_t ranks, int64_t rank,
                       tr_dropout_attr *drops, tr_split *out);
// The same as tr_op.split of ops whose attributes are tr_dropout_attr.
bool tr__dropout_split_alone(const tr_op_node *node, int way, int64_t ranks,
                             int64_t rank, tr_split *out);
// Writes the rule of dropout's backward, from gradient `from` to gradient `to`: the
// same draw again, or a copy where nothing is dropped.
void tr__dropout_rule(const tr_dropout_attr *attr, tr_ref from, tr_ref to,
                      tr_rule *rule);

#endif
