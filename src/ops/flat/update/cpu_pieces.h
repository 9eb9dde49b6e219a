// How the CPU's kernels of an update go through their elements.
#ifndef TR_OPS_FLAT_UPDATE_CPU_PIECES_H
#define TR_OPS_FLAT_UPDATE_CPU_PIECES_H

#include "ops/flat/update/pieces.h"

// Visits all, each piece in one unless gradients are converted or parameters are
// rounded: then at most TR_CONVERT_ELEMENTS at a time, which are still in the cache.
// After each such run of elements [first, first + count) comes `done` (NULL: nothing).
void tr__update_all_pieces(const tr_update_walk *walk,
                           void (*visit)(const tr_update_piece *),
                           void (*done)(const tr_update_walk *walk, int64_t first,
                                        int64_t count));

#endif
