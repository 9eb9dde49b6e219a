// What kernels ask.
#include "ops/nn/row_squares/row_squares.h"

#include "ops/operand.h"

#include <string.h>

tr_row_squares_sizes tr__row_squares_sizes(const tr_op_desc *desc) {
    tr_row_squares_sizes s;
    memcpy(&s.attr, desc->attr, sizeof s.attr);
    s.rows = s.attr.rows;
    s.rank = desc->in[1].shape.dim[0];
    s.in = desc->in[1].shape.dim[1];
    s.all = desc->in[0].shape.dim[desc->in[0].shape.rank - 1];
    return s;
}

void tr__row_squares_cost(const tr_op_desc *desc, tr_cost *out) {
    tr_row_squares_sizes s = tr__row_squares_sizes(desc);
    double flops = 2.0 * (double)s.rows * (double)s.in * (double)(s.rank + 1);
    tr__desc_cost(desc, 0, out);
    out->flops = desc->packs ? 0 : flops;
}
