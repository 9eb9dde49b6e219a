// A few columns of a wider tensor: adding to them, and taking them out. A stacked
// product (queries, keys and values) gets what one of its parts has beside it so.
#ifndef TR_OPS_NN_COLUMNS_COLUMNS_H
#define TR_OPS_NN_COLUMNS_COLUMNS_H

#include <tranche/extend/op.h>

typedef struct tr_columns_attr {
    int32_t first, count; // columns [first, first + count)
    float scale;
} tr_columns_attr;

// in: x [..., W], u [..., count]   out: y [..., W] = x, and + scale * u in the columns
extern const tr_op tr__op_add_columns;
// in: x [..., W]                   out: y [..., count] = scale * x in the columns
extern const tr_op tr__op_take_columns;

#endif
