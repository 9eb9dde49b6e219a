#include "ops/nn/transpose/sizes.h"
#include "ops/operand.h"

extern const tr_kernel tr__transpose_reference;

static void launch(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const float *x = launch->in[0]; // [matrices, rows, columns, inner]
    float *y = launch->out[0];      // [matrices, columns, rows, inner]
    tr_transpose_sizes a = tr__transpose_sizes(desc);
    for (int64_t to = 0; to < tr_shape_count(desc->out[0].shape); to++) {
        int64_t i = to % a.inner, row = to / a.inner % a.rows;
        int64_t column = to / a.inner / a.rows % a.columns;
        int64_t outer = to / a.inner / a.rows / a.columns;
        int64_t from = ((outer * a.rows + row) * a.columns + column) * a.inner + i;
        y[to] = launch->accumulate & 1 ? y[to] + x[from] : x[from];
    }
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 0, out);
}

const tr_kernel tr__transpose_reference = {
    .name = "transpose.reference",
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = launch,
};
