// How the ops of an update walk their elements: piece by piece, each a part of one
// range.
#ifndef TR_OPS_UPDATE_CPU_PIECES_H
#define TR_OPS_UPDATE_CPU_PIECES_H

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

// Visits all, each piece in one unless gradients are converted or parameters are
// rounded: then at most TR_CONVERT_ELEMENTS at a time, which are still in the cache.
// After each such run of elements [first, first + count) comes `done` (NULL: nothing).
void tr__update_all_pieces(const tr_update_walk *walk,
                           void (*visit)(const tr_update_piece *),
                           void (*done)(const tr_update_walk *walk, int64_t first,
                                        int64_t count));

#endif
