#include "ops/nn/columns/columns.h"
#include "ops/operand.h"

#include <string.h>

extern const tr_kernel tr__add_columns_reference, tr__take_columns_reference,
    tr__put_columns_reference, tr__join_columns_reference;

static void add(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const float *x = launch->in[0], *u = launch->in[1]; // [rows, W], [rows, count]
    float *y = launch->out[0];                          // [rows, W], may be x
    tr_columns_attr attr;
    memcpy(&attr, desc->attr, sizeof attr);
    int64_t rows = tr__shape_rows(desc->in[0].shape);
    int64_t width = tr__shape_width(desc->in[0].shape);
    for (int64_t i = 0; i < rows * width; i++) {
        int64_t column = i % width - attr.first;
        bool inside = column >= 0 && column < attr.count;
        double more =
            inside ? (double)attr.scale * (double)u[i / width * attr.count + column]
                   : 0;
        double value = inside ? (double)x[i] + more : (double)x[i];
        y[i] = (float)(launch->accumulate & 1 ? (double)y[i] + value : value);
    }
}

static void take(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const float *x = launch->in[0]; // [rows, W]
    float *y = launch->out[0];      // [rows, count]
    tr_columns_attr attr;
    memcpy(&attr, desc->attr, sizeof attr);
    int64_t width = tr__shape_width(desc->in[0].shape);
    for (int64_t i = 0; i < tr_shape_count(desc->out[0].shape); i++) {
        int64_t from = i / attr.count * width + attr.first + i % attr.count;
        double value = (double)attr.scale * (double)x[from];
        y[i] = (float)(launch->accumulate & 1 ? (double)y[i] + value : value);
    }
}

static void put(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const float *x = launch->in[0]; // [rows, count]
    float *y = launch->out[0];      // [rows, width]
    tr_columns_attr attr;
    memcpy(&attr, desc->attr, sizeof attr);
    for (int64_t i = 0; i < tr_shape_count(desc->out[0].shape); i++) {
        int64_t column = i % attr.width - attr.first;
        bool inside = column >= 0 && column < attr.count;
        double value = inside ? (double)attr.scale *
                                    (double)x[i / attr.width * attr.count + column]
                              : 0;
        y[i] = (float)(launch->accumulate & 1 ? (double)y[i] + value : value);
    }
}

static void join(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    int64_t rows = tr__shape_rows(desc->out[0].shape);
    int64_t width = tr__shape_width(desc->out[0].shape), first = 0;
    for (int i = 0; i < desc->in_count; i++) {
        const float *x = launch->in[i]; // [rows, count]
        int64_t count = tr__shape_width(desc->in[i].shape);
        for (int64_t at = 0; at < rows * count; at++) {
            float *y = launch->out[0]; // [rows, width]
            y += at / count * width + first + at % count;
            *y = launch->accumulate & 1 ? *y + x[at] : x[at];
        }
        first += count;
    }
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 1, out);
}

const tr_kernel tr__add_columns_reference = {
    .name = "add_columns.reference",
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = add,
};

const tr_kernel tr__take_columns_reference = {
    .name = "take_columns.reference",
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = take,
};

const tr_kernel tr__put_columns_reference = {
    .name = "put_columns.reference",
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = put,
};

const tr_kernel tr__join_columns_reference = {
    .name = "join_columns.reference",
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = join,
};
