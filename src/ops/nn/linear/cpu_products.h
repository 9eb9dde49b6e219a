// The three products of y = x W, for both layouts of W: what the linear op and the head
// are made of.
#ifndef TR_OPS_NN_LINEAR_CPU_PRODUCTS_H
#define TR_OPS_NN_LINEAR_CPU_PRODUCTS_H

#include "backend/cpu/matmul.h"
#include "ops/nn/linear/dims.h"

// All of f32, if the caller does not set their types.

// y = x W (+ bias, activated). Operands of a run: x, W.
tr_matmul_desc tr__product_output(const tr_linear_dims *dims, int threads);
// dx = dy W'. Operands of a run: dy, W.
tr_matmul_desc tr__product_input(const tr_linear_dims *dims, int threads);
// dW = x' dy, or dy' x. Run by tr__product_weight_run.
tr_matmul_desc tr__product_weight(const tr_linear_dims *dims, int threads);
tr_status tr__product_weight_run(tr_matmul *product, const tr_linear_dims *dims,
                                 bool accumulate, const void *dy, const void *x,
                                 float *dweight, void *workspace);

#endif
