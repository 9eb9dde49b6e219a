// The product of two tensors, element by element.
#ifndef TR_OPS_NN_MULTIPLY_MULTIPLY_H
#define TR_OPS_NN_MULTIPLY_MULTIPLY_H

#include <tranche/extend/op.h>

// No attributes. Its backward is two of its own.
// in: a [...], b [...]    out: y [...]
extern const tr_op tr__op_multiply;

#endif
