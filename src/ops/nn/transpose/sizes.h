// The matrices of transpose.
#ifndef TR_OPS_NN_TRANSPOSE_SIZES_H
#define TR_OPS_NN_TRANSPOSE_SIZES_H

#include "ops/nn/transpose/transpose.h"

#include <string.h>

typedef struct tr_transpose_sizes {
    int64_t matrices, rows, columns, inner;
} tr_transpose_sizes;

static inline tr_transpose_sizes tr__transpose_sizes(const tr_op_desc *desc) {
    tr_transpose_attr attr;
    memcpy(&attr, desc->attr, sizeof attr);
    const int64_t *x = desc->in[0].shape.dim;
    return (tr_transpose_sizes){x[0] * x[1] / attr.rows, attr.rows, x[2], x[3]};
}

#endif
