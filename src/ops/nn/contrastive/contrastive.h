// The contrastive loss of texts (InfoNCE; van den Oord, Li and Vinyals, arXiv
// 1807.03748), over all groups of the optimizer step, however it is cut: an anchor is
// to be told its positive from among the positives, and the negatives, of all groups.
//
// Two ops, between which every micro-batch of the step is to be there: one puts the
// embeddings of all groups into one tensor, the other is the loss of a micro-batch's
// groups beside that. Logits are computed text by text: there are never T x T of them.
#ifndef TR_OPS_NN_CONTRASTIVE_CONTRASTIVE_H
#define TR_OPS_NN_CONTRASTIVE_CONTRASTIVE_H

#include <tranche/extend/op.h>

typedef struct tr_contrastive_attr {
    int32_t normalize;  // of embeddings that inference gives: to length 1
    int32_t symmetric;  // half the loss is that of positives among anchors
    double temperature; // that products are divided by
} tr_contrastive_attr;

// in:  x [B, K, C] f32, of each group the anchor, the positive and, K = 3, a negative;
//      targets [B, K] i32; pool [T, K, C + 1] f32 (in training), as below. Without it,
//      the micro-batch's groups are all there are
// out: sums [TR_SUMS] f64: each group counts as one, which is correct where the
// positive
//      has the largest logit of the anchor's
extern const tr_op tr__op_contrastive;
// The same inputs; begins with run->loss_seed.
// out: dx [B, K, C], dpool [T, K, C + 1], sums [TR_SUMS] f64 (always added to)
extern const tr_op tr__op_contrastive_backward;

typedef struct tr_contrastive_pool_attr {
    int64_t groups; // T
} tr_contrastive_pool_attr;

// in:  x [B, K, C] f32
// out: pool [T, K, C + 1] f32, one for the wave: group s of the run has the place s mod
//      T, its texts' embeddings and a 1 behind each. Places without a group are zeros.
extern const tr_op tr__op_contrastive_pool;
// in:  dpool [T, K, C + 1], x (its shape alone)      out: dx [B, K, C]
extern const tr_op tr__op_contrastive_pool_backward;

#endif
