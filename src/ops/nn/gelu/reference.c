#include "ops/nn/gelu/gelu.h"
#include "ops/operand.h"

#include <math.h>

extern const tr_kernel tr__gelu_reference, tr__gelu_backward_reference;

// sqrt(2 / pi), and the factor of x^3 in the paper's approximation.
#define ROOT_2_OVER_PI 0.79788456080286535588
#define CUBIC          0.044715

static double gelu(double x, tr_gelu_form form) {
    if (form == TR_GELU_TANH) {
        return 0.5 * x * (1 + tanh(ROOT_2_OVER_PI * (x + CUBIC * x * x * x)));
    }
    return 0.5 * x * (1 + erf(x * M_SQRT1_2));
}

static double gelu_slope(double x, tr_gelu_form form) {
    if (form == TR_GELU_TANH) {
        double t = tanh(ROOT_2_OVER_PI * (x + CUBIC * x * x * x));
        double inner = ROOT_2_OVER_PI * (1 + 3 * CUBIC * x * x);
        return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner;
    }
    double density = 0.5 * ROOT_2_OVER_PI * exp(-0.5 * x * x);
    return 0.5 * (1 + erf(x * M_SQRT1_2)) + x * density;
}

static void launch_gelu(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const tr_gelu_attr *attr = (const void *)desc->attr;
    const float *x = launch->in[0]; // [count]
    float *y = launch->out[0];      // [count]
    int64_t count = tr_shape_count(desc->in[0].shape);
    for (int64_t i = 0; i < count; i++) {
        float value = (float)gelu(x[i], attr->form);
        y[i] = launch->accumulate & 1 ? y[i] + value : value;
    }
}

static void launch_gelu_backward(const tr_op_desc *desc, void *state,
                                 const tr_launch *launch) {
    (void)state;
    const tr_gelu_attr *attr = (const void *)desc->attr;
    const float *dy = launch->in[0], *x = launch->in[1]; // [count]
    float *dx = launch->out[0];                          // [count]
    int64_t count = tr_shape_count(desc->in[0].shape);
    for (int64_t i = 0; i < count; i++) {
        float value = (float)(dy[i] * gelu_slope(x[i], attr->form));
        dx[i] = launch->accumulate & 1 ? dx[i] + value : value;
    }
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 30, out);
}

const tr_kernel tr__gelu_reference = {
    .name = "gelu.reference",
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = launch_gelu,
};

const tr_kernel tr__gelu_backward_reference = {
    .name = "gelu_backward.reference",
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = launch_gelu_backward,
};
