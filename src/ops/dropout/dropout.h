// Dropout (Srivastava et al. 2014), inverted: y = x * mask / (1 - p).
#ifndef TR_OPS_DROPOUT_H
#define TR_OPS_DROPOUT_H

#include <tranche/op.h>

typedef struct tr_dropout_attr {
    float probability; // [0, 1)
    uint32_t draw_id;  // of this draw within the unit
} tr_dropout_attr;

// in: x [B, ...]   out: y [B, ...]. Its backward is itself on the gradient.
extern const tr_op tr__op_dropout;

#endif
