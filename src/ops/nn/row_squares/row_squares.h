// The squared lengths of the rows of a weight with an adapter; DoRA divides by the
// lengths (Liu et al., arXiv 2402.09353):
//
//     s[o] = |w[o] + scale * sum over k of b[o, k] a[k]|^2
//
// Ranks that have columns of the weight add up what they have of these sums. They
// depend on parameters alone. So a kernel that may pack finds them once for all
// micro-batches between two updates (tr_kernel.packed): the weight does not change, and
// a and b change at once.
#ifndef TR_OPS_NN_ROW_SQUARES_ROW_SQUARES_H
#define TR_OPS_NN_ROW_SQUARES_ROW_SQUARES_H

#include <tranche/extend/op.h>

typedef struct tr_row_squares_attr {
    tr_quantization kind; // of the weight
    int32_t in_out;       // the weight is [in, all], and its columns are what is meant
    int32_t first, rows;  // [first, first + rows) of them; of few bits: first is 0
    int64_t tensor;       // of few bits: the byte at which the layer's tensor begins
    float scale;
} tr_row_squares_attr;

// in: w [all, in] (or [in, all], or words of few bits), a [rank, in], b [rows, rank]
// out: s [rows] f32
// It has no backward: DoRA takes the lengths for constants.
extern const tr_op tr__op_row_squares;

// What kernels work on.
typedef struct tr_row_squares_sizes {
    tr_row_squares_attr attr;
    int64_t rows, in, rank, all;
} tr_row_squares_sizes;

tr_row_squares_sizes tr__row_squares_sizes(const tr_op_desc *desc);
void tr__row_squares_cost(const tr_op_desc *desc, tr_cost *out);

#endif
