#include "ops/nn/silu/silu.h"
#include "ops/operand.h"

#include <math.h>

extern const tr_kernel tr__silu_reference, tr__silu_backward_reference;

static double logistic(double x) {
    return 1 / (1 + exp(-x));
}

static void put(float *to, double value, bool add) {
    *to = (float)(add ? *to + value : value);
}

static void launch_silu(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const float *x = launch->in[0]; // [count]
    float *y = launch->out[0];      // [count]
    int64_t count = tr_shape_count(desc->in[0].shape);
    for (int64_t i = 0; i < count; i++) {
        put(y + i, x[i] * logistic(x[i]), launch->accumulate & 1);
    }
}

static void launch_silu_backward(const tr_op_desc *desc, void *state,
                                 const tr_launch *launch) {
    (void)state;
    const float *dy = launch->in[0], *x = launch->in[1]; // [count]
    float *dx = launch->out[0];                          // [count]
    int64_t count = tr_shape_count(desc->in[0].shape);
    for (int64_t i = 0; i < count; i++) {
        double s = logistic(x[i]);
        put(dx + i, dy[i] * (s + x[i] * s * (1 - s)), launch->accumulate & 1);
    }
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 10, out);
}

const tr_kernel tr__silu_reference = {
    .name = "silu.reference",
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = launch_silu,
};

const tr_kernel tr__silu_backward_reference = {
    .name = "silu_backward.reference",
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = launch_silu_backward,
};
