// The sizes of y = x W, for both layouts of W.
#ifndef TR_OPS_NN_LINEAR_DIMS_H
#define TR_OPS_NN_LINEAR_DIMS_H

#include "ops/nn/linear/linear.h"

// x [rows, in], y [rows, out], W [out, in] or [in, out]
typedef struct tr_linear_dims {
    int64_t rows, in, out;
    tr_weight_layout layout;
    int64_t dy_row; // elements from one row of dy to the next; 0: out
} tr_linear_dims;

// Where W[i, o] is: at w[i * in_step + o * out_step].
static inline int64_t tr__weight_in_step(const tr_linear_dims *dims) {
    return dims->layout == TR_WEIGHT_IN_OUT ? dims->out : 1;
}

static inline int64_t tr__weight_out_step(const tr_linear_dims *dims) {
    return dims->layout == TR_WEIGHT_IN_OUT ? 1 : dims->in;
}

#endif
