// silu(x) = x s(x), s being the logistic function: swish.
#ifndef TR_OPS_NN_SILU_SILU_H
#define TR_OPS_NN_SILU_SILU_H

#include <tranche/extend/op.h>

// No attributes.
// in: x [...]             out: y [...]
extern const tr_op tr__op_silu;
// in: dy [...], x [...]   out: dx [...] = dy (s + x s (1 - s))
extern const tr_op tr__op_silu_backward;

#endif
