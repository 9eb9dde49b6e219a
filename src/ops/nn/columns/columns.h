// A few columns of a wider tensor: adding to them, taking them out and putting them
// back; and tensors side by side. A stacked product (queries, keys and values) gets
// what one of its parts has beside it so.
#ifndef TR_OPS_NN_COLUMNS_COLUMNS_H
#define TR_OPS_NN_COLUMNS_COLUMNS_H

#include <tranche/extend/op.h>

typedef struct tr_columns_attr {
    int32_t first, count; // columns [first, first + count)
    float scale;
    int32_t width; // of y: only put_columns
} tr_columns_attr;

enum { TR_JOINED_MAX = 4 };

// in: x [..., W], u [..., count]   out: y [..., W] = x, and + scale * u in the columns
extern const tr_op tr__op_add_columns;
// in: x [..., W]                   out: y [..., count] = scale * x in the columns
extern const tr_op tr__op_take_columns;
// in: x [..., count]               out: y [..., width] = scale * x in the columns, else
// 0
extern const tr_op tr__op_put_columns;
// No attributes. Its backward takes the columns out.
// in: x [..., W0], ... up to TR_JOINED_MAX of them, which differ in the last dimension
// alone                            out: y [..., W0 + ...]
extern const tr_op tr__op_join_columns;

#endif
