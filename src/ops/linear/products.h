// The three products of y = x W, for both layouts of W: what the linear op and the head
// are made of.
#ifndef TR_OPS_LINEAR_PRODUCTS_H
#define TR_OPS_LINEAR_PRODUCTS_H

#include "backend/cpu/matmul.h"
#include "ops/linear/linear.h"

// x [rows, in], y [rows, out], W [out, in] or [in, out]
typedef struct tr_linear_dims {
    int64_t rows, in, out;
    tr_weight_layout layout;
    int64_t dy_row; // elements from one row of dy to the next; 0: out
} tr_linear_dims;

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

// Where W[i, o] is: at w[i * in_step + o * out_step].
static inline int64_t tr__weight_in_step(const tr_linear_dims *dims) {
    return dims->layout == TR_WEIGHT_IN_OUT ? dims->out : 1;
}

static inline int64_t tr__weight_out_step(const tr_linear_dims *dims) {
    return dims->layout == TR_WEIGHT_IN_OUT ? 1 : dims->in;
}

#endif
