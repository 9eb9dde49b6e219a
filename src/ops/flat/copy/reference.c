#include "ops/flat/copy/copy.h"
#include "ops/operand.h"

extern const tr_kernel tr__copy_reference;

static void copy(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const float *x = launch->in[0]; // [count]
    float *y = launch->out[0];      // [count]
    int64_t count = tr_shape_count(desc->in[0].shape);
    for (int64_t i = 0; i < count; i++) {
        y[i] = launch->accumulate & 1 ? y[i] + x[i] : x[i];
    }
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 0, out);
}

const tr_kernel tr__copy_reference = {
    .name = "copy.reference",
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = copy,
};
