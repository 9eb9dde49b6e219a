// y = x + b, one number for each column: what a product whose parts ranks have summed
// gets behind the sum.
#ifndef TR_OPS_NN_BIAS_BIAS_H
#define TR_OPS_NN_BIAS_BIAS_H

#include <tranche/extend/op.h>

// No attributes. Real tensors are all of one type: f32, bf16 or f16.
// in: x [..., C], b [C]   out: y [..., C]
extern const tr_op tr__op_bias;

#endif
