#include "ops/nn/row_squares/row_squares.h"

#include "base/quantized.h"
#include "ops/operand.h"

#include <string.h>

extern const tr_kernel tr__row_squares_reference;

// Has the weight the rows that the attributes say, `in` wide?
static bool has_rows(const tr_op_node *node, const tr_row_squares_attr *attr,
                     int64_t in) {
    tr_shape shape = node->in[0].shape;
    if (attr->kind != TR_QUANTIZED_NOT) {
        int64_t bytes = tr__quantized_layout(attr->kind, attr->rows * in).bytes;
        return shape.rank == 1 && attr->first == 0 && attr->tensor >= 0 &&
               attr->tensor + bytes <= tr_tensor_bytes(node->in[0]);
    }
    return shape.rank == 2 && shape.dim[!attr->in_out] == in && attr->first >= 0 &&
           attr->rows >= 1 && attr->first <= shape.dim[attr->in_out] - attr->rows;
}

static tr_status infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                       tr_error *err) {
    tr_row_squares_attr attr;
    char text[TR_SHAPE_TEXT];
    memcpy(&attr, node->attr, sizeof attr);
    tr_status status = tr__operand_count(node, 3, 3, err);
    status = status == TR_OK ? tr__operand_real(node, 1, err) : status;
    tr_shape a = node->in[1].shape;
    tr_dtype real = node->in[1].dtype;
    if (status == TR_OK && a.rank != 2) {
        return tr_fail(err, TR_USAGE, "%s: a has the shape %s, not [rank, in]",
                       node->op->name, tr__shape_text(a, text));
    }
    if (status == TR_OK) {
        status = tr__operand_shape(node, 2, real, TR_SHAPE2(attr.rows, a.dim[0]), err);
    }
    if (status == TR_OK) {
        status = tr__operand_dtype(node, 0,
                                   attr.kind == TR_QUANTIZED_NOT ? real : TR_I32, err);
    }
    if (status == TR_OK && !has_rows(node, &attr, a.dim[1])) {
        return tr_fail(err, TR_USAGE,
                       "%s: a weight of the shape %s has no rows [%d, +%d) of %lld",
                       node->op->name, tr__shape_text(node->in[0].shape, text),
                       (int)attr.first, (int)attr.rows, (long long)a.dim[1]);
    }
    out[0] = (tr_tensor_desc){TR_F32, TR_SHAPE1(attr.rows)};
    *out_count = 1;
    return status;
}

// ---- over ranks

static void place(void *attr, int range, int64_t first, int64_t count) {
    tr_row_squares_attr *at = attr;
    (void)range;
    at->first = (int32_t)first;
    at->rows = (int32_t)count;
}

static int width_of(const tr_op_node *node, const tr_row_squares_attr *attr) {
    return (int)node->in[0].shape.dim[attr->in_out ? 1 : 0];
}

// As the products cut the weight and the adapter: the rows that are meant are one block
// of the weight's, or all (way 0); or each rank has a part of every row (way 1).
static bool split(const tr_op_node *node, int way, int64_t ranks, int64_t rank,
                  tr_split *out) {
    tr_row_squares_attr attr;
    bool rows = way == 0;
    (void)ranks;
    (void)rank;
    memcpy(&attr, node->attr, sizeof attr);
    out->in[0] = tr__cut_along(rows == (attr.in_out == 0) ? 0 : 1);
    out->in[1] = rows ? tr__uncut() : tr__cut_along(1);
    out->in[2] = rows ? tr__cut_along(0) : tr__uncut();
    out->out[0] = rows ? tr__cut_along(0) : tr__uncut();
    out->partial = !rows;
    out->follows = rows ? 1 << 0 | 1 << 2 : 1 << 0 | 1 << 1;
    if (rows) {
        bool all = attr.rows == width_of(node, &attr);
        tr__cut_add(&out->in[2], all ? 0 : attr.rows);
        tr__cut_add(&out->out[0], all ? 0 : attr.rows);
        out->range[out->ranges++] = (tr_split_range){attr.first, attr.rows, 0};
        out->taken = 1 + 0;
        out->place = place;
    }
    return way <= 1 && attr.kind == TR_QUANTIZED_NOT;
}

const tr_op tr__op_row_squares = {
    .name = "row_squares",
    .attr_bytes = sizeof(tr_row_squares_attr),
    .no_gradient = 7,
    .packed_input = 1 + 1,
    .infer = infer,
    .split = split,
    .reference = &tr__row_squares_reference,
};
