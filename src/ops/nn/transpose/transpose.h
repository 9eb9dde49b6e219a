// Two dimensions of a sample exchanged: [outer, rows, columns, inner] becomes [outer,
// columns, rows, inner].
#ifndef TR_OPS_NN_TRANSPOSE_TRANSPOSE_H
#define TR_OPS_NN_TRANSPOSE_TRANSPOSE_H

#include <tranche/extend/op.h>

typedef struct tr_transpose_attr {
    int32_t rows;
} tr_transpose_attr;

// in: x [B, outer rows, columns, inner]   out: y [B, outer columns, rows, inner]
extern const tr_op tr__op_transpose;

#endif
