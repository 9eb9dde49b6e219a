// What DoRA makes of a product (Liu et al., arXiv 2402.09353): each column is
// multiplied by what has been learnt, and divided by the length of its row of the
// weight, whose square is given (ops/nn/row_squares).
#ifndef TR_OPS_NN_MAGNITUDE_MAGNITUDE_H
#define TR_OPS_NN_MAGNITUDE_MAGNITUDE_H

#include <tranche/extend/op.h>

// A product may be of several layers. Those that have magnitudes, one after the other;
// other columns stay as they are.
enum { TR_MAGNITUDE_LAYERS = 3 };

typedef struct tr_magnitude_attr {
    int32_t layers;
    int32_t first[TR_MAGNITUDE_LAYERS]; // columns [first, first + count) of each
    int32_t count[TR_MAGNITUDE_LAYERS];
} tr_magnitude_attr;

// in: x [..., W], then of each layer m [count] and s [count] f32
// out: y [..., W] = x m / sqrt(s). Where s is 0, x is multiplied by 0.
// dx is the same of dy.
extern const tr_op tr__op_magnitude;

// in: dy [..., W], x [..., W], then of each layer s
// out: of each layer dm [count] f32
extern const tr_op tr__op_magnitude_gradient;

enum { TR_MAGNITUDE_S = 2 }; // the first s among the operands of the last one

// What kernels work on.
typedef struct tr_magnitude_sizes {
    tr_magnitude_attr attr;
    int64_t rows, width;
} tr_magnitude_sizes;

tr_magnitude_sizes tr__magnitude_sizes(const tr_op_desc *desc);
// The inputs that are f32 whatever the others are: the squared lengths.
enum { TR_MAGNITUDE_PLAIN = 1 << 2 | 1 << 4 | 1 << 6 };

#endif
