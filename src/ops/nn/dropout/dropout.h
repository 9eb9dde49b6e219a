// Dropout (Srivastava et al. 2014), inverted: y = x * mask / (1 - p).
#ifndef TR_OPS_NN_DROPOUT_DROPOUT_H
#define TR_OPS_NN_DROPOUT_DROPOUT_H

#include <tranche/extend/op.h>

typedef struct tr_dropout_attr {
    float probability; // [0, 1)
    uint32_t draw_id;  // of this draw within the unit
} tr_dropout_attr;

// in: x [B, ...]   out: y [B, ...]. Its backward is itself on the gradient.
extern const tr_op tr__op_dropout;

// For shape rules of ops that drop: TR_USAGE unless probability is in [0, 1).
tr_status tr__dropout_check(const char *op_name, float probability, tr_error *err);
// Writes the rule of dropout's backward, from gradient `from` to gradient `to`: the
// same draw again, or a copy where nothing is dropped.
void tr__dropout_rule(const tr_dropout_attr *attr, tr_ref from, tr_ref to,
                      tr_rule *rule);

#endif
