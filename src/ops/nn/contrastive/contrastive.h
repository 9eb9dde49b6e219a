// The contrastive loss of texts (InfoNCE; van den Oord, Li and Vinyals, arXiv
// 1807.03748), over all groups of the optimizer step, however it is cut: an anchor is
// to be told its positive from among the positives, and the negatives, of all groups.
//
// Two ops, between which every micro-batch of the step is to be there: one puts the
// embeddings of all groups into one tensor, the other is the loss of a micro-batch's
// groups beside that. Logits are computed text by text: there are never T x T of them.
#ifndef TR_OPS_NN_CONTRASTIVE_CONTRASTIVE_H
#define TR_OPS_NN_CONTRASTIVE_CONTRASTIVE_H

#include "ops/nn/contrastive/mark.h"

#include <tranche/extend/op.h>

typedef struct tr_contrastive_attr {
    int32_t normalize;  // of embeddings that inference gives: to length 1
    int32_t symmetric;  // half the loss is that of positives among anchors
    int32_t mask_equal; // equal texts are not each other's negatives
    int32_t none;       // 0, in place of bytes that are not set
    double temperature; // that products are divided by; with a scale it is not read
} tr_contrastive_attr;

// in:  x [B, K, C] f32, of each group the anchor, the positive and, K = 3, a negative;
//      targets [B, K] i32: numbers of texts, that equal ones share; pool [T, K, C + 2]
//      f32 (in training), as below, without it the micro-batch's groups are all there
//      are; scale [] f32 or absent: log(1 / temperature), as CLIP (Radford et al.,
//      arXiv 2103.00020) has it
// out: sums [TR_SUMS] f64: each group counts as one, which is correct where the
//      positive has the largest logit of the anchor's
//
// mask_equal leaves a text out of an anchor's candidates where it equals the anchor or
// its positive, and the positive of a group whose anchor equals this one; likewise of a
// positive's.
extern const tr_op tr__op_contrastive;
// The same inputs; begins with run->loss_seed.
// out: dx [B, K, C], dpool [T, K, C + 2], dscale [], sums [TR_SUMS] f64 (always added
// to)
extern const tr_op tr__op_contrastive_backward;

typedef struct tr_contrastive_pool_attr {
    int64_t groups; // T
} tr_contrastive_pool_attr;

// in:  x [B, K, C] f32, targets [B, K] i32
// out: pool [T, K, C + 2] f32, one for the wave: group s of the run has the place s mod
//      T, its texts' embeddings and behind each the text's number (tr__text_mark).
//      Places without a group are zeros.
extern const tr_op tr__op_contrastive_pool;
// in:  dpool [T, K, C + 2], x (its shape alone)      out: dx [B, K, C]
extern const tr_op tr__op_contrastive_pool_backward;

#endif
