// Rows of length 1: y = x / max(|x|, 1e-12), as torch.nn.functional.normalize has it.
#ifndef TR_OPS_NN_NORMALIZE_NORMALIZE_H
#define TR_OPS_NN_NORMALIZE_NORMALIZE_H

#include <tranche/extend/op.h>

// in:  x [..., C]      out: y, as x
extern const tr_op tr__op_normalize;
// in:  dy, x           out: dx
extern const tr_op tr__op_normalize_backward;

#endif
