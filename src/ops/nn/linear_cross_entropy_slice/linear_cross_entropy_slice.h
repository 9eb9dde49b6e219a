// The head (ops/linear_cross_entropy) with its vocabulary in slices: only one slice's
// weight, and only one slice's gradient, need be whole at a time.
//
// A slice folds its logits into what is running over the slices, row by row:
//
//     lse'    = log(e^lse + sum of e^logit over the slice)
//     picked' = picked + the target's logit where the slice has it
//
// and after the last one the loss of a row is lse - picked. This is the running softmax
// of Milakov and Gimelshein, "Online normalizer calculation for softmax", arXiv
// 1805.02867, in f64. The backward goes from the last slice to the first by the chain
// rule: the gradient of a logit is dlse' e^(logit - lse'), and dpicked' more for the
// target's, that of lse before is dlse' e^(lse - lse'). Where a slice keeps no logits,
// its backward multiplies them out once more: four products of the head's size in place
// of three.
#ifndef TR_OPS_NN_LINEAR_CROSS_ENTROPY_SLICE_LINEAR_CROSS_ENTROPY_SLICE_H
#define TR_OPS_NN_LINEAR_CROSS_ENTROPY_SLICE_LINEAR_CROSS_ENTROPY_SLICE_H

#include "ops/nn/linear_cross_entropy/linear_cross_entropy.h"

typedef struct tr_lce_slice_attr {
    tr_lce_attr head;
    int64_t first;        // class of the slice's first logit
    int64_t keeps_logits; // 1: they are a result, which the backward reads; 0: not
} tr_lce_slice_attr;

// Of a head whose classes ranks share (graph/rewrites/split.c).
typedef struct tr_lce_shared_attr {
    tr_lce_slice_attr slice; // this rank's
    int64_t classes;         // the most that a rank has
} tr_lce_shared_attr;

// in:  x [..., C], weight [V, C] or [C, V] and bias [V] or absent (real), of the
//      slice's V classes, targets [...] i32 (of all classes; < 0: no target),
//      running [..., 2] f64 (lse, picked) and best [..., 2] f32 of the slices before;
//      the first slice has neither
// out: running [..., 2] f64, best [..., 2] f32: the largest logit so far, and whether
//      the first class that has it is the target (1 or 0); if logits are kept, these
//      [..., V rounded up to 64] f32, with zeros behind them. Zeros where no target
//      is.
extern const tr_op tr__op_linear_cross_entropy_slice;
// in:  x, weight, bias, targets, running before (or absent) and after, the gradient of
//      the latter; the logits, or nothing
// out: dx [..., C], dweight f32, dbias f32 or absent, the gradient of running before or
// absent
extern const tr_op tr__op_linear_cross_entropy_slice_backward;

// No attributes.
// in:  running [..., 2] f64 and best [..., 2] f32 of the last slice, targets [...] i32
// out: sums [TR_SUMS] f64, added to. A loss (TR_OP_LOSS).
extern const tr_op tr__op_linear_cross_entropy_slice_loss;
// The same inputs, scaled with run->loss_seed:
// out: the gradient of running, sums [TR_SUMS] f64 (always added to)
extern const tr_op tr__op_linear_cross_entropy_slice_loss_backward;

#endif
