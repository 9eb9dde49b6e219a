// Cross-entropy of logits that are there: for models whose head is no product alone.
// (ops/nn/linear_cross_entropy makes logits and loss in one op, and keeps none.)
#ifndef TR_OPS_NN_CROSS_ENTROPY_CROSS_ENTROPY_H
#define TR_OPS_NN_CROSS_ENTROPY_CROSS_ENTROPY_H

#include <tranche/extend/op.h>

typedef struct tr_cross_entropy_attr {
    // Share of the target that all classes get alike (Szegedy et al., arXiv 1512.00567,
    // sec. 7), in [0, 1): as label_smoothing of torch.nn.CrossEntropyLoss.
    float smoothing;
} tr_cross_entropy_attr;

// in:  x [..., V] logits; targets [...] i32, TR_NO_TARGET: there is none; weight [V] of
//      the classes, of x's type, or absent
// out: sums [TR_SUMS] f64: a target counts as much as its class weighs. One is correct
//      where no logit is larger than that of the target, and none before it as large.
extern const tr_op tr__op_cross_entropy;
// The same inputs; its gradient begins with run->loss_seed.
// out: dx [..., V], sums [TR_SUMS] f64 (always added to)
extern const tr_op tr__op_cross_entropy_backward;
// The loss of each row: what a caller makes its own loss of.
// in:  as above
// out: each [...] f32, as much as the row adds to the sum above; 0: it has no target
extern const tr_op tr__op_cross_entropy_each;
// in:  x, targets, weight, d_each [...] f32
// out: dx [..., V]
extern const tr_op tr__op_cross_entropy_each_backward;
// What inference gives in place of the sums. in: the same (x alone is read)
// out: y [..., V] f32, the numbers of x
extern const tr_op tr__op_cross_entropy_logits;

#endif
