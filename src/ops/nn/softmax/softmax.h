// softmax(x) over the last dimension: e^(scale x) divided by the sum of these.
#ifndef TR_OPS_NN_SOFTMAX_SOFTMAX_H
#define TR_OPS_NN_SOFTMAX_SOFTMAX_H

#include <tranche/extend/op.h>

typedef struct tr_softmax_attr {
    float scale;
} tr_softmax_attr;

// in: x [..., W]               out: y [..., W]
extern const tr_op tr__op_softmax;
// in: dy [..., W], y [..., W]  out: dx [..., W] = scale y (dy - the sum of dy y)
extern const tr_op tr__op_softmax_backward;

#endif
