// y = r + dropout(x): the end of a residual branch.
#ifndef TR_OPS_NN_RESIDUAL_RESIDUAL_H
#define TR_OPS_NN_RESIDUAL_RESIDUAL_H

#include <tranche/extend/op.h>

#include "ops/nn/dropout/dropout.h"

// Attributes: tr_dropout_attr.
// in:  r [...], x [...]     out: y [...]
extern const tr_op tr__op_residual;

#endif
