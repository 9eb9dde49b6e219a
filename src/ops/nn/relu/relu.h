// ReLU: max(x, 0).
#ifndef TR_OPS_NN_RELU_RELU_H
#define TR_OPS_NN_RELU_RELU_H

#include <tranche/extend/op.h>

// No attributes.
// in: x [...]             out: y [...]
extern const tr_op tr__op_relu;
// in: dy [...], y [...]   out: dx [...] = 0 where y <= 0, else dy
extern const tr_op tr__op_relu_backward;

#endif
