// A second loss beside the one that ends a model, with a count of its own: the
// cross-entropy of rows, each times a weight that comes with the batch.
//
// A step's loss is one sum divided by one count. So that the mean of another loss comes
// to it, each of its rows weighs as much as the first loss has targets for each of them
// in the whole step. This ratio is known before the step (data/order/feed.h), and the
// same for every cut of it.
#ifndef TR_OPS_NN_AUXILIARY_LOSS_AUXILIARY_LOSS_H
#define TR_OPS_NN_AUXILIARY_LOSS_AUXILIARY_LOSS_H

#include <tranche/extend/op.h>

// in:  x [..., V] logits; targets [...] i32, TR_NO_TARGET: there is none; weights [...]
//      f32
// out: sums [TR_SUMS] f64: weight times cross-entropy is added to the losses. Nothing
//      is counted, and nothing is correct.
extern const tr_op tr__op_auxiliary_loss;
// The same inputs; its gradient begins with run->loss_seed.
// out: dx [..., V], sums [TR_SUMS] f64 (always added to)
extern const tr_op tr__op_auxiliary_loss_backward;

#endif
