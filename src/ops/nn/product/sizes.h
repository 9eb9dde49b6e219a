// The sizes of the matrices.
#ifndef TR_OPS_NN_PRODUCT_SIZES_H
#define TR_OPS_NN_PRODUCT_SIZES_H

#include "ops/nn/product/product.h"
#include "ops/operand.h"

#include <string.h>

typedef struct tr_product_sizes {
    int64_t matrices, m, k, n; // a [m, k], b [k, n], y [m, n]
    bool a_transposed, b_transposed;
} tr_product_sizes;

static inline tr_product_sizes tr__product_sizes(const tr_op_desc *desc) {
    tr_product_attr attr;
    memcpy(&attr, desc->attr, sizeof attr);
    const int64_t *a = desc->in[0].shape.dim, *y = desc->out[0].shape.dim;
    return (tr_product_sizes){.matrices = a[0] * a[1],
                              .m = y[2],
                              .k = a[attr.a_transposed ? 2 : 3],
                              .n = y[3],
                              .a_transposed = attr.a_transposed != 0,
                              .b_transposed = attr.b_transposed != 0};
}

static inline void tr__product_cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 2 * (double)tr__product_sizes(desc).k, out);
}

#endif
