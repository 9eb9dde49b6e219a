#include "ops/nn/softmax/softmax.h"
#include "ops/operand.h"

#include <math.h>
#include <string.h>

extern const tr_kernel tr__softmax_reference, tr__softmax_backward_reference;

static double scale_of(const tr_op_desc *desc) {
    tr_softmax_attr attr;
    memcpy(&attr, desc->attr, sizeof attr);
    return (double)attr.scale;
}

static void put(float *to, double value, bool add) {
    *to = (float)(add ? *to + value : value);
}

static void launch_softmax(const tr_op_desc *desc, void *state,
                           const tr_launch *launch) {
    (void)state;
    int64_t width = tr__shape_width(desc->in[0].shape);
    double scale = scale_of(desc);
    for (int64_t row = 0; row < tr__shape_rows(desc->in[0].shape); row++) {
        const float *x = (const float *)launch->in[0] + row * width;
        float *y = (float *)launch->out[0] + row * width;
        double top = -(double)INFINITY, sum = 0;
        for (int64_t i = 0; i < width; i++) {
            top = scale * x[i] > top ? scale * x[i] : top;
        }
        for (int64_t i = 0; i < width; i++) {
            sum += exp(scale * x[i] - top);
        }
        for (int64_t i = 0; i < width; i++) {
            put(y + i, exp(scale * x[i] - top) / sum, launch->accumulate & 1);
        }
    }
}

static void launch_backward(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    (void)state;
    int64_t width = tr__shape_width(desc->in[0].shape);
    double scale = scale_of(desc);
    for (int64_t row = 0; row < tr__shape_rows(desc->in[0].shape); row++) {
        const float *dy = (const float *)launch->in[0] + row * width;
        const float *y = (const float *)launch->in[1] + row * width;
        float *dx = (float *)launch->out[0] + row * width;
        double sum = 0;
        for (int64_t i = 0; i < width; i++) {
            sum += (double)dy[i] * y[i];
        }
        for (int64_t i = 0; i < width; i++) {
            put(dx + i, scale * y[i] * (dy[i] - sum), launch->accumulate & 1);
        }
    }
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 20, out);
}

const tr_kernel tr__softmax_reference = {
    .name = "softmax.reference",
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = launch_softmax,
};

const tr_kernel tr__softmax_backward_reference = {
    .name = "softmax_backward.reference",
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = launch_backward,
};
