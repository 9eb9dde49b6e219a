// What the reference kernels of the head and of its slices are made of.
#ifndef TR_OPS_NN_LINEAR_CROSS_ENTROPY_REFERENCE_PARTS_H
#define TR_OPS_NN_LINEAR_CROSS_ENTROPY_REFERENCE_PARTS_H

#include "ops/nn/linear_cross_entropy/operands.h"

// The logits of one row. x: [C]; w: the weight; bias: [V] or NULL; logits: [V].
void tr__lce_reference_logits(const tr_linear_dims *d, const float *x, const float *w,
                              const float *bias, double *logits);
// Puts what the gradients of the logits [rows, V] give into HEAD_DX, HEAD_DWEIGHT and
// HEAD_DBIAS, as far as the launch has them.
void tr__lce_reference_put(const tr_op_desc *desc, const tr_launch *launch,
                           const double *gradients);

#endif
