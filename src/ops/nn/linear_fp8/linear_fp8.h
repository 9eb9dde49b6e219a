// y = act(x W + b) whose product takes operands of 8 bits: x and W are rounded to E4M3,
// and gradients of y to E5M2, each as a tensor with a scale of its own (base/fp8.h,
// "current scaling": the scale follows from the tensor's largest absolute value now).
// Products of the rounded numbers are summed in f32. Bias, activation and results are
// as those of `linear`, and so is the gradient of the bias, whose dy is not rounded.
//
// The largest absolute value is that of the rows that are there; rows that a short
// micro-batch lacks are rounded with saturation. The first dimension of x and dy is
// that of samples.
#ifndef TR_OPS_NN_LINEAR_FP8_LINEAR_FP8_H
#define TR_OPS_NN_LINEAR_FP8_LINEAR_FP8_H

#include "ops/nn/linear/linear.h"

// Operands and attributes (tr_linear_attr) are those of tr__op_linear ...
extern const tr_op tr__op_linear_fp8;
// ... of tr__op_linear_backward_input ...
extern const tr_op tr__op_linear_fp8_backward_input;
// ... and of tr__op_linear_backward_weight, without dbias.
extern const tr_op tr__op_linear_fp8_backward_weight;

#endif
