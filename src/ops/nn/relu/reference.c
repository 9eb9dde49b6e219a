#include "ops/nn/relu/relu.h"
#include "ops/operand.h"

extern const tr_kernel tr__relu_reference, tr__relu_backward_reference;

static void relu(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const float *x = launch->in[0]; // [count]
    float *y = launch->out[0];      // [count]
    int64_t count = tr_shape_count(desc->in[0].shape);
    for (int64_t i = 0; i < count; i++) {
        float value = x[i] < 0 ? 0 : x[i]; // NaN stays
        y[i] = launch->accumulate & 1 ? y[i] + value : value;
    }
}

static void relu_backward(const tr_op_desc *desc, void *state,
                          const tr_launch *launch) {
    (void)state;
    const float *dy = launch->in[0], *y = launch->in[1]; // [count]
    float *dx = launch->out[0];                          // [count]
    int64_t count = tr_shape_count(desc->in[0].shape);
    for (int64_t i = 0; i < count; i++) {
        float value = y[i] <= 0 ? 0 : dy[i]; // behind a NaN it goes on
        dx[i] = launch->accumulate & 1 ? dx[i] + value : value;
    }
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 1, out);
}

const tr_kernel tr__relu_reference = {
    .name = "relu.reference",
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = relu,
};

const tr_kernel tr__relu_backward_reference = {
    .name = "relu_backward.reference",
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = relu_backward,
};
