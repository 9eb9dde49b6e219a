// What DoRA makes of a product (Liu et al., arXiv 2402.09353): each column is
// multiplied by what has been learnt, and divided by the length of its row of the
// weight (ops/nn/row_norm).
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

// in: x [..., W], bias [W] or absent, then of each layer m [count] and n [count] f32
// out: y [..., W] = x m / n + bias. Where n is 0, x is multiplied by 0.
extern const tr_op tr__op_magnitude;

// in: dy [..., W], then of each layer m and n      out: dx [..., W]
extern const tr_op tr__op_magnitude_input;
// in: dy [..., W], x [..., W], then of each layer n
// out: of each layer dm [count] f32, then dbias [W] f32
extern const tr_op tr__op_magnitude_gradient;

enum { TR_MAGNITUDE_N = 2 }; // the first n among the operands of the last one

// What kernels work on.
typedef struct tr_magnitude_sizes {
    tr_magnitude_attr attr;
    int64_t rows, width;
} tr_magnitude_sizes;

tr_magnitude_sizes tr__magnitude_sizes(const tr_op_desc *desc);
// The inputs that are f32 whatever the others are: the lengths. Of the op, of _input.
uint32_t tr__magnitude_plain(const tr_op_desc *desc);

#endif
