// y = x, or y += x: what the derived backward needs where a gradient cannot be an
// alias.
#ifndef TR_OPS_FLAT_COPY_COPY_H
#define TR_OPS_FLAT_COPY_COPY_H

#include <tranche/extend/op.h>

// No attributes.
// in: x [...]   out: y [...]
extern const tr_op tr__op_copy;

#endif
