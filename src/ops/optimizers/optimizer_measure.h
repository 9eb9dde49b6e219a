// The first phase of an update whose rate follows each tensor's norms: over the blocks
// that lie in one flat buffer, whichever tensor's they are.
#ifndef TR_OPS_OPTIMIZERS_OPTIMIZER_MEASURE_H
#define TR_OPS_OPTIMIZERS_OPTIMIZER_MEASURE_H

#include "ops/flat/gradient_squares/gradient_squares.h"
#include "ops/optimizers/optimizer.h"

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

#endif
