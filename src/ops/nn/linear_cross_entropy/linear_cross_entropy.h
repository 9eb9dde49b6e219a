// The last product and the cross-entropy in one: logits = x W + b, loss = -log
// softmax(logits)[target]. Works through chunks of rows, so the logits are never whole.
#ifndef TR_OPS_NN_LINEAR_CROSS_ENTROPY_LINEAR_CROSS_ENTROPY_H
#define TR_OPS_NN_LINEAR_CROSS_ENTROPY_LINEAR_CROSS_ENTROPY_H

#include <tranche/extend/op.h>

#include "ops/nn/linear/linear.h"

typedef struct tr_lce_attr {
    tr_weight_layout layout;
    int32_t chunk_rows; // 0: the kernel's choice
    // Of the rows, the share that is expected to have a target; 0: all. Only costs go
    // by it.
    double share;
} tr_lce_attr;

// Real tensors are all of one type: f32, bf16 or f16; logits are f32.
// in:  x [..., C], weight [V, C] or [C, V], bias [V] or absent,
//      targets [...] i32 (< 0: no target)
// out: sums [TR_SUMS] f64, added to. A loss (TR_OP_LOSS).
extern const tr_op tr__op_linear_cross_entropy;
// The same inputs; everything at once, scaled with run->loss_seed:
// out: dx [..., C], dweight f32, dbias f32 or absent, sums [TR_SUMS] f64 (always added
// to)
extern const tr_op tr__op_linear_cross_entropy_backward;
// The same inputs; out: logits [B, V] f32, B = x's first dimension: of each sample, the
// logits of its last row that has a target >= 0 (zeros where none has).
extern const tr_op tr__op_linear_cross_entropy_logits;
// The same inputs, of which targets are not read; out: logits [..., V] f32 of all rows.
extern const tr_op tr__op_linear_cross_entropy_logits_rows;

#endif
