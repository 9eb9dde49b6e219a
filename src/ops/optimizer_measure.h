// The first phase of an update whose rate follows each tensor's norms: over the blocks
// that lie in one flat buffer, whichever tensor's they are.
#ifndef TR_OPS_OPTIMIZER_MEASURE_H
#define TR_OPS_OPTIMIZER_MEASURE_H

#include "ops/gradient_squares/gradient_squares.h"
#include "ops/optimizer.h"

// Sums of squares of a part of a tensor.
typedef struct tr_squares {
    double param, direction;
} tr_squares;

// The parts in which elements [first, first + count) of a flat buffer are measured:
// those that lie in one block of TR_NORM_BLOCK. Two tensors that share a block have
// each a part of their own in it.
static inline int64_t tr__measure_parts(int64_t first, int64_t count) {
    return (first + count - 1) / TR_NORM_BLOCK - first / TR_NORM_BLOCK + 1;
}

// Runs the first phase of an optimizer on a range that begins at element `first` of its
// flat buffer, and measures it: parts: [tr__measure_parts(first, update->count)]. isa
// -1: plain C. Bits depend neither on the number of threads nor on how a range is cut
// at block boundaries.
void tr__optimizer_measure(const tr_optimizer *optimizer, int isa, int threads,
                           const tr_hyper *hyper, const tr_update *update,
                           int64_t first, tr_squares *parts);

#endif
