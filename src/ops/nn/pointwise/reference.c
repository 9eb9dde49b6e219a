#include "ops/nn/pointwise/pointwise.h"
#include "ops/operand.h"

#include <math.h>
#include <string.h>

extern const tr_kernel tr__pointwise_reference, tr__pointwise_backward_reference;

static double logistic(double x) {
    return 1 / (1 + exp(-x));
}

// NaN stays.
static double clamp(double x, double low, double high) {
    return x < low ? low : x > high ? high : x;
}

static double value_of(tr_pointwise_attr f, double x) {
    double a = (double)f.a, b = (double)f.b;
    switch ((tr_pointwise_kind)f.kind) {
    case TR_POINTWISE_SIGMOID:
        return logistic(x);
    case TR_POINTWISE_CLAMP:
    case TR_POINTWISE_HARDTANH:
        return clamp(x, a, b);
    case TR_POINTWISE_LEAKY_RELU:
        return x > 0 ? x : a * x;
    case TR_POINTWISE_ELU:
        return x > 0 ? x : a * expm1(x);
    case TR_POINTWISE_HARDSIGMOID:
        return clamp(x + 3, 0, 6) / 6;
    case TR_POINTWISE_HARDSWISH:
        return x * clamp(x + 3, 0, 6) / 6;
    case TR_POINTWISE_SOFTPLUS:
        return a * x > b ? x : log1p(exp(a * x)) / a;
    case TR_POINTWISE_EXP:
        return exp(x);
    case TR_POINTWISE_LOG:
        return log(x);
    case TR_POINTWISE_SQRT:
        return sqrt(x);
    case TR_POINTWISE_POWER:
        return pow(x, a);
    case TR_POINTWISE_LINEAR:
        return a * x + b;
    case TR_POINTWISE_ABS:
        return fabs(x);
    case TR_POINTWISE_KINDS:
        break;
    }
    return (double)NAN;
}

static double slope_of(tr_pointwise_attr f, double x) {
    double a = (double)f.a, b = (double)f.b, s;
    switch ((tr_pointwise_kind)f.kind) {
    case TR_POINTWISE_SIGMOID:
        s = logistic(x);
        return s * (1 - s);
    case TR_POINTWISE_CLAMP:
        return x < a || x > b ? 0 : 1;
    case TR_POINTWISE_HARDTANH:
        return x <= a || x >= b ? 0 : 1;
    case TR_POINTWISE_LEAKY_RELU:
        return x > 0 ? 1 : a;
    case TR_POINTWISE_ELU:
        return x > 0 ? 1 : a * exp(x);
    case TR_POINTWISE_HARDSIGMOID:
        return x <= -3 || x >= 3 ? 0 : 1.0 / 6;
    case TR_POINTWISE_HARDSWISH:
        return x <= -3 ? 0 : x >= 3 ? 1 : x / 3 + 0.5;
    case TR_POINTWISE_SOFTPLUS:
        return a * x > b ? 1 : logistic(a * x);
    case TR_POINTWISE_EXP:
        return exp(x);
    case TR_POINTWISE_LOG:
        return 1 / x;
    case TR_POINTWISE_SQRT:
        return 0.5 / sqrt(x);
    case TR_POINTWISE_POWER:
        return a == 0 ? 0 : a * pow(x, a - 1);
    case TR_POINTWISE_LINEAR:
        return a;
    case TR_POINTWISE_ABS:
        return x > 0 ? 1 : x < 0 ? -1 : 0;
    case TR_POINTWISE_KINDS:
        break;
    }
    return (double)NAN;
}

static void put(float *to, double value, bool add) {
    *to = (float)(add ? *to + value : value);
}

static void launch_value(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const float *x = launch->in[0]; // [count]
    float *y = launch->out[0];      // [count]
    tr_pointwise_attr attr;
    memcpy(&attr, desc->attr, sizeof attr);
    for (int64_t i = 0; i < tr_shape_count(desc->in[0].shape); i++) {
        put(y + i, value_of(attr, (double)x[i]), launch->accumulate & 1);
    }
}

static void launch_slope(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const float *dy = launch->in[0], *x = launch->in[1]; // [count]
    float *dx = launch->out[0];                          // [count]
    tr_pointwise_attr attr;
    memcpy(&attr, desc->attr, sizeof attr);
    for (int64_t i = 0; i < tr_shape_count(desc->in[0].shape); i++) {
        double value = (double)dy[i] * slope_of(attr, (double)x[i]);
        put(dx + i, value, launch->accumulate & 1);
    }
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 10, out);
}

const tr_kernel tr__pointwise_reference = {
    .name = "pointwise.reference",
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = launch_value,
};

const tr_kernel tr__pointwise_backward_reference = {
    .name = "pointwise_backward.reference",
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = launch_slope,
};
