// Packed samples: the place of each token in its document, as an optional operand
// [B, S] i32. A document begins where it is 0 and goes on where it is one more than
// before, so a token at place p has p tokens of its document before it. Who makes a
// batch checks them (data/sources/callback.c); kernels trust them.
#ifndef TR_OPS_NN_POSITIONS_H
#define TR_OPS_NN_POSITIONS_H

#include "ops/operand.h"

// Is input i there?
static inline bool tr__has_positions(const tr_op_node *node, int i) {
    return i < node->in_count && node->in[i].dtype != TR_NONE;
}

// Where input i is there, it has a place for each row of `rows`, [B, S, ...].
static inline tr_status tr__operand_positions(const tr_op_node *node, int i,
                                              tr_shape rows, tr_error *err) {
    tr_shape shape = TR_SHAPE2(rows.dim[0], rows.dim[1]);
    return tr__has_positions(node, i) ? tr__operand_shape(node, i, TR_I32, shape, err)
                                      : TR_OK;
}

// Input i of the launch, [B, S]; NULL: each sample is one document.
static inline const int32_t *tr__launch_positions(const tr_op_desc *desc,
                                                  const tr_launch *launch, int i) {
    return i < desc->in_count && desc->in[i].dtype != TR_NONE ? launch->in[i] : NULL;
}

#endif
