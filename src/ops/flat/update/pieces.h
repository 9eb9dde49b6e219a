// How the ops of an update go through their elements: piece by piece, each a part of
// one range.
#ifndef TR_OPS_FLAT_UPDATE_PIECES_H
#define TR_OPS_FLAT_UPDATE_PIECES_H

#include "ops/flat/update/update.h"

typedef struct tr_update_walk {
    const tr_op_desc *desc;
    const tr_launch *launch;
    const tr_update_attr *attr;
    const tr_update_order *order;
    float *param; // of element attr->first
} tr_update_walk;

typedef struct tr_update_piece {
    const tr_update_walk *walk;
    const tr_update_range *range;
    const tr_optimizer *optimizer;
    tr_hyper hyper; // the range's own
    tr_update update;
    int64_t first; // element of its flat buffer
} tr_update_piece;

// The pieces of elements [first, first + count) of the flat buffer, whose gradients are
// at `grads`, in order. NULL: elsewhere, which who visits them knows.
void tr__update_pieces(const tr_update_walk *walk, int64_t first, int64_t count,
                       const float *grads, void (*visit)(const tr_update_piece *));

#endif
