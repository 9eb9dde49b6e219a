// Rows of a micro-batch, taken out and put back. A tensor [B, S, ...] has B * S rows,
// one behind the other. So a part of them is dense, however many samples there are, and
// lies in a tensor that looks like `count` tokens of each sample.
#ifndef TR_OPS_NN_ROWS_ROWS_H
#define TR_OPS_NN_ROWS_ROWS_H

#include <tranche/extend/op.h>

typedef struct tr_rows_attr {
    int64_t first, count, tokens; // rows [B * first, B * (first + count)) of B * tokens
} tr_rows_attr;

// in:  x [B, tokens, ...], real, or i32 (which has no gradient)
// out: y [B, count, ...]: rows of x
extern const tr_op tr__op_take_rows;
// in:  x [B, count, ...], real
// out: y [B, tokens, ...]: the rows of x where take_rows has them from, else 0. Where
// it
//      is added to y, the other rows are not touched.
extern const tr_op tr__op_put_rows;

// Elements [first, first + count) of the tensor that has all of the rows: x of
// take_rows, y of put_rows.
typedef struct tr_rows {
    int64_t first, count, all;
} tr_rows;

static inline tr_rows tr__rows_of(const tr_op_desc *desc, const tr_tensor_desc *whole) {
    const tr_rows_attr *attr = (const void *)desc->attr;
    int64_t all = tr_shape_count(whole->shape), token = all / attr->tokens;
    return (tr_rows){attr->first * token, attr->count * token, all};
}

#endif
