#include "ops/nn/tanh/tanh.h"
#include "ops/operand.h"

#include <math.h>

extern const tr_kernel tr__tanh_reference, tr__tanh_backward_reference;

static void put(float *to, double value, bool add) {
    *to = (float)(add ? *to + value : value);
}

static void launch_tanh(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const float *x = launch->in[0]; // [count]
    float *y = launch->out[0];      // [count]
    int64_t count = tr_shape_count(desc->in[0].shape);
    for (int64_t i = 0; i < count; i++) {
        put(y + i, tanh(x[i]), launch->accumulate & 1);
    }
}

static void launch_tanh_backward(const tr_op_desc *desc, void *state,
                                 const tr_launch *launch) {
    (void)state;
    const float *dy = launch->in[0], *y = launch->in[1]; // [count]
    float *dx = launch->out[0];                          // [count]
    int64_t count = tr_shape_count(desc->in[0].shape);
    for (int64_t i = 0; i < count; i++) {
        put(dx + i, dy[i] * (1 - (double)y[i] * y[i]), launch->accumulate & 1);
    }
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 10, out);
}

const tr_kernel tr__tanh_reference = {
    .name = "tanh.reference",
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = launch_tanh,
};

const tr_kernel tr__tanh_backward_reference = {
    .name = "tanh_backward.reference",
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = launch_tanh_backward,
};
