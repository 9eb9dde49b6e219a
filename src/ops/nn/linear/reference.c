#include "ops/nn/linear/operands.h"

extern const tr_kernel tr__linear_reference, tr__linear_backward_input_reference,
    tr__linear_backward_bias_reference, tr__linear_backward_weight_reference;

static void put(float *out, double value, bool accumulate) {
    *out = (float)(accumulate ? *out + value : value);
}

static void output(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const float *x = launch->in[0];    // [rows, in]
    const float *w = launch->in[1];    // [out, in] or [in, out]
    const float *bias = launch->in[2]; // [out] or NULL
    float *y = launch->out[0];         // [rows, out]
    tr_linear_dims d = tr__linear_output_dims(desc);
    int64_t in_step = tr__weight_in_step(&d), out_step = tr__weight_out_step(&d);
    bool relu = tr__linear_attr(desc).activation == TR_ACTIVATION_RELU;
    for (int64_t r = 0; r < d.rows; r++) {
        for (int64_t o = 0; o < d.out; o++) {
            double sum = bias ? bias[o] : 0;
            for (int64_t i = 0; i < d.in; i++) {
                sum += (double)x[r * d.in + i] * w[i * in_step + o * out_step];
            }
            put(&y[r * d.out + o], relu && sum < 0 ? 0 : sum, launch->accumulate & 1);
        }
    }
}

static void input(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const float *dy = launch->in[0]; // [rows, out]
    const float *w = launch->in[1];  // [out, in] or [in, out]
    float *dx = launch->out[0];      // [rows, in]
    tr_linear_dims d = tr__linear_input_dims(desc);
    int64_t in_step = tr__weight_in_step(&d), out_step = tr__weight_out_step(&d);
    for (int64_t r = 0; r < d.rows; r++) {
        for (int64_t i = 0; i < d.in; i++) {
            double sum = 0;
            for (int64_t o = 0; o < d.out; o++) {
                sum += (double)dy[r * d.out + o] * w[i * in_step + o * out_step];
            }
            put(&dx[r * d.in + i], sum, launch->accumulate & 1);
        }
    }
}

// dw: [out, in] or [in, out], += or = the sum over rows of x dy
static void weight_gradient(const tr_linear_dims *d, const float *dy, const float *x,
                            bool accumulate, float *dw) {
    int64_t in_step = tr__weight_in_step(d), out_step = tr__weight_out_step(d);
    for (int64_t o = 0; o < d->out; o++) {
        for (int64_t i = 0; i < d->in; i++) {
            double sum = 0;
            for (int64_t r = 0; r < d->rows; r++) {
                sum += (double)dy[r * d->out + o] * x[r * d->in + i];
            }
            put(&dw[i * in_step + o * out_step], sum, accumulate);
        }
    }
}

static void weight(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const float *dy = launch->in[0]; // [rows, out]
    const float *x = launch->in[1];  // [rows, in]
    float *dbias = launch->out[1];   // [out] or NULL
    tr_linear_dims d = tr__linear_weight_dims(desc);
    if (launch->out[0]) {
        weight_gradient(&d, dy, x, launch->accumulate & 1, launch->out[0]);
    }
    for (int64_t o = 0; dbias && o < d.out; o++) {
        double sum = 0;
        for (int64_t r = 0; r < d.rows; r++) {
            sum += dy[r * d.out + o];
        }
        put(&dbias[o], sum, launch->accumulate & 2);
    }
}

const tr_kernel tr__linear_reference = {
    .name = "linear.reference",
    .supports = tr__desc_f32,
    .cost = tr__linear_output_cost,
    .launch = output,
};

const tr_kernel tr__linear_backward_input_reference = {
    .name = "linear_backward_input.reference",
    .supports = tr__desc_f32,
    .cost = tr__linear_input_cost,
    .launch = input,
};

const tr_kernel tr__linear_backward_weight_reference = {
    .name = "linear_backward_weight.reference",
    .supports = tr__desc_f32,
    .cost = tr__linear_weight_cost,
    .launch = weight,
};

const tr_kernel tr__linear_backward_bias_reference = {
    .name = "linear_backward_bias.reference",
    .supports = tr__desc_f32,
    .cost = tr__linear_bias_cost,
    .launch = weight,
};
