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

enum { TR_FP8_FACTORS = 2 };

// The scale of a factor of which each rank has a part is that of the whole tensor: so
// each number is rounded as on one rank. An input more for each factor then has what
// all ranks have found (tr__op_gather_largest).
typedef struct tr_linear_fp8_attr {
    tr_linear_attr linear;
    int32_t column[TR_FP8_FACTORS]; // of factor i, in what is gathered
    // Of tr__op_linear_fp8: the ranks of which each has a part of the gradient of y, as
    // a gather_largest names them; axes 0: each has all of it.
    uint32_t axes;
    int32_t ranks, rank;
} tr_linear_fp8_attr;

// Operands are those of tr__op_linear, and behind the bias what tells x's largest value
// and the weight's, each [ranks, n] f32 or absent ...
extern const tr_op tr__op_linear_fp8;
// ... of tr__op_linear_backward_input, and what tells dy's and the weight's ...
extern const tr_op tr__op_linear_fp8_backward_input;
// ... and of tr__op_linear_backward_weight, without dbias, and what tells dy's and x's.
extern const tr_op tr__op_linear_fp8_backward_weight;

// Operands before those that tell.
static inline int tr__fp8_plain_inputs(const tr_op *op) {
    return op == &tr__op_linear_fp8 ? 3 : 2;
}

#endif
