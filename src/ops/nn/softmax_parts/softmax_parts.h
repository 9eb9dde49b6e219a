// The softmax of rows whose classes are cut over ranks. Each rank folds the classes
// that it has (ops/nn/linear_cross_entropy_slice) and puts what comes of them in its
// place among those of all ranks, zeros in the others'; a sum over the ranks fills all
// places, exactly; then each rank joins the parts, in the order of ranks:
//
//     lse    = log(sum over the ranks of e^lse_r)
//     picked = sum over the ranks of picked_r
//
// and the best logit is the first of the largest ones. A part is f32, so that it is
// exchanged as other tensors are; lse takes two elements, and keeps f64's precision. So
// of a row 20 bytes a rank go to the others, in one exchange, and no rank has the
// logits of another (Shoeybi et al., Megatron-LM, arXiv 1909.08053, section 3,
// exchanges largest logits, sums and targets' logits one after the other).
#ifndef TR_OPS_NN_SOFTMAX_PARTS_SOFTMAX_PARTS_H
#define TR_OPS_NN_SOFTMAX_PARTS_SOFTMAX_PARTS_H

#include <tranche/extend/op.h>

typedef struct tr_softmax_part_attr {
    int64_t ranks, rank;
} tr_softmax_part_attr;

// in:  running [..., 2] f64 (lse, picked), best [..., 2] f32 (logit, is target)
// out: parts [..., 5 ranks] f32: at 5 rank lse, what is left of it beyond f32, picked
//      and best, else 0. lse's rest has no gradient.
extern const tr_op tr__op_softmax_part;
// The same attributes.
// in:  the gradient of parts
// out: that of running
extern const tr_op tr__op_softmax_part_backward;

// No attributes.
// in:  parts [..., 5 ranks] f32
// out: running [..., 2] f64, best [..., 2] f32
extern const tr_op tr__op_softmax_join;
// in:  parts, running, the gradient of running
// out: the gradient of parts; that of lse's rest and of best is 0
extern const tr_op tr__op_softmax_join_backward;

#endif
