// Functions of each element alone that have no op of their own.
#ifndef TR_OPS_NN_POINTWISE_POINTWISE_H
#define TR_OPS_NN_POINTWISE_POINTWISE_H

#include <tranche/extend/graph.h>
#include <tranche/extend/op.h>

typedef struct tr_pointwise_attr {
    int32_t kind; // tr_pointwise_kind
    float a, b;
} tr_pointwise_attr;

// in: x [...]             out: y [...] = f(x)
extern const tr_op tr__op_pointwise;
// in: dy [...], x [...]   out: dx [...] = dy f'(x)
extern const tr_op tr__op_pointwise_backward;

#endif
