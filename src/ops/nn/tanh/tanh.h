// The hyperbolic tangent, as the pooler of BERT has it.
#ifndef TR_OPS_NN_TANH_TANH_H
#define TR_OPS_NN_TANH_TANH_H

#include <tranche/extend/op.h>

// No attributes.
// in: x [...]             out: y [...]
extern const tr_op tr__op_tanh;
// in: dy [...], y [...]   out: dx [...] = dy (1 - y^2)
extern const tr_op tr__op_tanh_backward;

#endif
