#include "ops/nn/columns/columns.h"

#include "ops/operand.h"

#include <string.h>

extern const tr_kernel tr__add_columns_reference, tr__take_columns_reference,
    tr__put_columns_reference, tr__join_columns_reference;

// Has input 0 these columns? *narrow: the shape of them alone.
static tr_status check(const tr_op_node *node, tr_shape *narrow, tr_error *err) {
    tr_columns_attr attr;
    char text[TR_SHAPE_TEXT];
    memcpy(&attr, node->attr, sizeof attr);
    tr_status status = tr__operand_real(node, 0, err);
    if (status != TR_OK) {
        return status;
    }
    *narrow = node->in[0].shape;
    int64_t *last = &narrow->dim[narrow->rank - 1];
    if (attr.first < 0 || attr.count < 1 || attr.first > *last - attr.count) {
        return tr_fail(err, TR_USAGE, "%s: x of the shape %s has no columns [%d, +%d)",
                       node->op->name, tr__shape_text(*narrow, text), attr.first,
                       attr.count);
    }
    *last = attr.count;
    return TR_OK;
}

static tr_status add_infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                           tr_error *err) {
    tr_shape narrow;
    tr_status status = tr__operand_count(node, 2, 2, err);
    status = status == TR_OK ? check(node, &narrow, err) : status;
    if (status == TR_OK) {
        status = tr__operand_shape(node, 1, node->in[0].dtype, narrow, err);
    }
    out[0] = node->in[0];
    *out_count = 1;
    return status;
}

static tr_status take_infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                            tr_error *err) {
    tr_shape narrow;
    tr_status status = tr__operand_count(node, 1, 1, err);
    status = status == TR_OK ? check(node, &narrow, err) : status;
    if (status == TR_OK) {
        out[0] = (tr_tensor_desc){node->in[0].dtype, narrow};
        *out_count = 1;
    }
    return status;
}

static tr_status put_infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                           tr_error *err) {
    tr_columns_attr attr;
    char text[TR_SHAPE_TEXT];
    memcpy(&attr, node->attr, sizeof attr);
    tr_status status = tr__operand_count(node, 1, 1, err);
    status = status == TR_OK ? tr__operand_real(node, 0, err) : status;
    if (status != TR_OK) {
        return status;
    }
    tr_shape shape = node->in[0].shape;
    int64_t *last = &shape.dim[shape.rank - 1];
    if (*last != attr.count || attr.first < 0 ||
        attr.first > (int64_t)attr.width - attr.count) {
        return tr_fail(err, TR_USAGE,
                       "put_columns: x of the shape %s does not fit into the columns "
                       "[%d, +%d) of %d",
                       tr__shape_text(shape, text), (int)attr.first, (int)attr.count,
                       (int)attr.width);
    }
    *last = attr.width;
    out[0] = (tr_tensor_desc){node->in[0].dtype, shape};
    *out_count = 1;
    return TR_OK;
}

static tr_status join_infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                            tr_error *err) {
    tr_status status = tr__operand_count(node, 1, TR_JOINED_MAX, err);
    int64_t width = 0;
    for (int i = 0; i < node->in_count && status == TR_OK; i++) {
        tr_shape shape = node->in[0].shape;
        status = tr__operand_real(node, i, err);
        if (status == TR_OK && node->in[i].shape.rank > 0) {
            shape.dim[shape.rank - 1] = tr__shape_width(node->in[i].shape);
            status = tr__operand_shape(node, i, node->in[0].dtype, shape, err);
            width += tr__shape_width(shape);
        }
    }
    if (status == TR_OK) {
        out[0] = node->in[0];
        out[0].shape.dim[out[0].shape.rank - 1] = width;
        *out_count = 1;
    }
    return status;
}

static int take_backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    tr_columns_attr attr;
    memcpy(&attr, node->attr, sizeof attr);
    attr.width = (int32_t)tr__shape_width(node->in[0].shape);
    rules[0] = (tr_rule){
        .op = &tr__op_put_columns, .in = {TR_GRAD_OUT(0)}, .out = {TR_GRAD_IN(0)}};
    memcpy(rules[0].attr, &attr, sizeof attr);
    return 1;
}

static int join_backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    tr_columns_attr attr = {.scale = 1};
    for (int i = 0; i < node->in_count; i++) {
        attr.first += attr.count;
        attr.count = (int32_t)tr__shape_width(node->in[i].shape);
        rules[i] = (tr_rule){
            .op = &tr__op_take_columns, .in = {TR_GRAD_OUT(0)}, .out = {TR_GRAD_IN(i)}};
        memcpy(rules[i].attr, &attr, sizeof attr);
    }
    return node->in_count;
}

static int add_backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    rules[0] = (tr_rule){
        .op = &tr__op_take_columns, .in = {TR_GRAD_OUT(0)}, .out = {TR_GRAD_IN(1)}};
    memcpy(rules[0].attr, node->attr, sizeof(tr_columns_attr));
    rules[1] = (tr_rule){.in = {TR_GRAD_OUT(0)}, .out = {TR_GRAD_IN(0)}};
    return 2;
}

static void place(void *attr, int range, int64_t first, int64_t count) {
    tr_columns_attr *at = attr;
    (void)range;
    at->first = (int32_t)first;
    at->count = (int32_t)count;
}

// The columns are one of the blocks that x is cut in, such as the queries, or all of
// them. Where all ranks have as much of each, a rank's columns begin and end at its
// share.
static bool add_split(const tr_op_node *node, int way, int64_t ranks, int64_t rank,
                      tr_split *out) {
    tr_columns_attr attr;
    (void)ranks;
    (void)rank;
    memcpy(&attr, node->attr, sizeof attr);
    out->in[0] = out->out[0] = tr__cut_last(&node->in[0]);
    tr__split_range(node, out, attr.first, attr.count, 1 << 1);
    out->place = place;
    return way == 0;
}

// What lies beside each other is cut each by itself.
static bool join_split(const tr_op_node *node, int way, int64_t ranks, int64_t rank,
                       tr_split *out) {
    int64_t first = 0;
    (void)ranks;
    (void)rank;
    out->out[0] = tr__cut_last(&node->out[0]);
    for (int i = 0; i < node->in_count; i++) {
        int64_t width = tr__shape_width(node->in[i].shape);
        tr__split_range(node, out, first, width, 1u << i);
        tr__cut_add(&out->out[0], width);
        first += width;
    }
    return way == 0;
}

const tr_op tr__op_add_columns = {
    .name = "add_columns",
    .attr_bytes = sizeof(tr_columns_attr),
    .in_place = 1 + 0,
    .infer = add_infer,
    .backward = add_backward,
    .split = add_split,
    .reference = &tr__add_columns_reference,
};

const tr_op tr__op_take_columns = {
    .name = "take_columns",
    .attr_bytes = sizeof(tr_columns_attr),
    .infer = take_infer,
    .backward = take_backward,
    .reference = &tr__take_columns_reference,
};

const tr_op tr__op_put_columns = {
    .name = "put_columns",
    .attr_bytes = sizeof(tr_columns_attr),
    .infer = put_infer,
    .reference = &tr__put_columns_reference,
};

const tr_op tr__op_join_columns = {
    .name = "join_columns",
    .infer = join_infer,
    .backward = join_backward,
    .split = join_split,
    .recompute_class = {TR_RECOMPUTE_ACTIVATION},
    .reference = &tr__join_columns_reference,
};
