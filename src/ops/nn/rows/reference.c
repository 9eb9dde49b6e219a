#include "ops/nn/rows/rows.h"
#include "ops/operand.h"

#include <string.h>

extern const tr_kernel tr__take_rows_reference, tr__put_rows_reference;

static void take(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_rows rows = tr__rows_of(desc, &desc->in[0]);
    const float *x = (const float *)launch->in[0] + rows.first;
    float *y = launch->out[0];
    if (!(launch->accumulate & 1)) {
        memcpy(y, x, (size_t)rows.count * sizeof *y); // of integers, too
        return;
    }
    for (int64_t i = 0; i < rows.count; i++) {
        y[i] += x[i];
    }
}

static void put(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_rows rows = tr__rows_of(desc, &desc->out[0]);
    const float *x = launch->in[0];
    float *y = launch->out[0];
    if (!(launch->accumulate & 1)) {
        memset(y, 0, (size_t)rows.all * sizeof *y);
    }
    for (int64_t i = 0; i < rows.count; i++) {
        y[rows.first + i] += x[i];
    }
}

static bool take_supports(const tr_op_desc *desc) {
    bool integers = desc->in[0].dtype == TR_I32 && !(desc->accumulate & 1);
    return integers || tr__desc_f32(desc);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 0, out);
}

const tr_kernel tr__take_rows_reference = {
    .name = "take_rows.reference",
    .supports = take_supports,
    .cost = cost,
    .launch = take,
};

const tr_kernel tr__put_rows_reference = {
    .name = "put_rows.reference",
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = put,
};
