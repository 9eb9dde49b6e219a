// How the ops of an update walk their elements: piece by piece, each a part of one
// range.
#ifndef TR_OPS_UPDATE_PIECES_H
#define TR_OPS_UPDATE_PIECES_H

#include "ops/update/update.h"

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
    tr_hyper hyper; // the range's own
    tr_update update;
    int64_t first; // element of its flat buffer
} tr_update_piece;

// Visits the pieces of elements [first, first + count), whose gradients are f32 at
// `grads`. No cut but at the ends of ranges.
void tr__update_pieces(const tr_update_walk *walk, int64_t first, int64_t count,
                       const float *grads, void (*visit)(const tr_update_piece *));

// Visits all, at most so many elements at a time where gradients are converted or
// parameters are rounded: these are still in the cache then. After each such run of
// elements [first, first + count) comes `done` (NULL: nothing).
void tr__update_all_pieces(const tr_update_walk *walk,
                           void (*visit)(const tr_update_piece *),
                           void (*done)(const tr_update_walk *walk, int64_t first,
                                        int64_t count));

// Bytes of workspace that the walk needs for what it converts.
size_t tr__update_workspace(const tr_op_desc *desc);

// Is the sum of gradients of a type that can be walked?
bool tr__update_reads(tr_dtype sums);

#endif
