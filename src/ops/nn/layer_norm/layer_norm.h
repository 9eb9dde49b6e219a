// Layer normalization (Ba, Kiros, Hinton, arXiv 1607.06450), alone or with the residual
// sum before it in one pass.
#ifndef TR_OPS_NN_LAYER_NORM_LAYER_NORM_H
#define TR_OPS_NN_LAYER_NORM_LAYER_NORM_H

#include "ops/nn/dropout/dropout.h"

typedef struct tr_layer_norm_attr {
    float epsilon;
    tr_dropout_attr dropout; // residual_norm only: on the branch
} tr_layer_norm_attr;

// in:  x [..., C], weight [C], bias [C]
// out: y [..., C], mean [...], rstd [...]   (all cheap: recomputed from x)
extern const tr_op tr__op_layer_norm;
// in:  dy [..., C], x [..., C], mean [...], rstd [...], weight [C]
// out: dx [..., C], dweight [C], dbias [C]
extern const tr_op tr__op_layer_norm_backward;
// s = r + dropout(x), y = layer_norm(s).
// in:  r [..., C], x [..., C], weight [C], bias [C]
// out: s [..., C], y [..., C], mean [...], rstd [...]   (all but s cheap: recomputed
//      from s by tr__op_layer_norm, bit for bit)
extern const tr_op tr__op_residual_norm;

#endif
