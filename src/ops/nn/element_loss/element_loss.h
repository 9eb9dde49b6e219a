// Losses that compare numbers one by one: texts with several labels each, and
// regression.
#ifndef TR_OPS_NN_ELEMENT_LOSS_ELEMENT_LOSS_H
#define TR_OPS_NN_ELEMENT_LOSS_ELEMENT_LOSS_H

#include <tranche/extend/graph.h>
#include <tranche/extend/op.h>

typedef struct tr_element_loss_attr {
    int32_t kind; // tr_element_loss_kind
} tr_element_loss_attr;

// in:  x [...]; targets [...] f32, NAN: there is none
// out: sums [TR_SUMS] f64: each element counts as one. Of TR_ELEMENTS_BINARY one is
//      correct where x > 0 says what target > 1/2 does; of TR_ELEMENTS_SQUARE none is.
extern const tr_op tr__op_element_loss;
// The same inputs; its gradient begins with run->loss_seed.
// out: dx [...], sums [TR_SUMS] f64 (always added to)
extern const tr_op tr__op_element_loss_backward;
// What inference gives in its place. in: x [...], targets (not read)
// out: y [...] f32, the numbers of x
extern const tr_op tr__op_element_logits;

#endif
