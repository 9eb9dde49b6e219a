#include "ops/nn/swiglu/swiglu.h"
#include "ops/operand.h"

#include <math.h>

extern const tr_kernel tr__swiglu_reference, tr__swiglu_backward_reference;

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

static void put(float *to, double value, bool add) {
    *to = (float)(add ? *to + value : value);
}

static void launch_swiglu(const tr_op_desc *desc, void *state,
                          const tr_launch *launch) {
    (void)state;
    const float *h = launch->in[0]; // [rows, 2 I]
    float *y = launch->out[0];      // [rows, I]
    int64_t rows = tr__shape_rows(desc->in[0].shape);
    int64_t width = tr__shape_width(desc->in[0].shape) / 2;
    for (int64_t i = 0; i < rows * width; i++) {
        const float *gate = h + i / width * 2 * width + i % width;
        put(&y[i], gate[0] * sigmoid(gate[0]) * gate[width], launch->accumulate & 1);
    }
}

static void launch_backward(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    (void)state;
    const float *dy = launch->in[0], *h = launch->in[1]; // [rows, I], [rows, 2 I]
    float *dh = launch->out[0];                          // [rows, 2 I]
    int64_t rows = tr__shape_rows(desc->in[1].shape);
    int64_t width = tr__shape_width(desc->in[1].shape) / 2;
    for (int64_t i = 0; i < rows * width; i++) {
        int64_t at = i / width * 2 * width + i % width;
        double gate = h[at], up = h[at + width], s = sigmoid(gate);
        put(&dh[at], dy[i] * up * (s + gate * s * (1 - s)), launch->accumulate & 1);
        put(&dh[at + width], dy[i] * gate * s, launch->accumulate & 1);
    }
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 25, out);
}

const tr_kernel tr__swiglu_reference = {
    .name = "swiglu.reference",
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = launch_swiglu,
};

const tr_kernel tr__swiglu_backward_reference = {
    .name = "swiglu_backward.reference",
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = launch_backward,
};
