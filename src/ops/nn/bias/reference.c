#include "ops/nn/bias/bias.h"
#include "ops/operand.h"

extern const tr_kernel tr__bias_reference;

static void launch(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const float *x = launch->in[0], *b = launch->in[1]; // [rows, width], [width]
    float *y = launch->out[0];                          // [rows, width]
    int64_t count = tr_shape_count(desc->in[0].shape);
    int64_t width = tr__shape_width(desc->in[0].shape);
    for (int64_t i = 0; i < count; i++) {
        double value = (double)x[i] + b[i % width];
        y[i] = (float)(launch->accumulate & 1 ? y[i] + value : value);
    }
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 1, out);
}

const tr_kernel tr__bias_reference = {
    .name = "bias.reference",
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = launch,
};
