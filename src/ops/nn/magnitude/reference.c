#include "ops/nn/magnitude/magnitude.h"
#include "ops/operand.h"

extern const tr_kernel tr__magnitude_reference, tr__magnitude_input_reference,
    tr__magnitude_gradient_reference;

static void put(float *to, double value, bool add) {
    *to = (float)(add ? (double)*to + value : value);
}

// The layer that the column is of; -1: none.
static int layer_of(const tr_magnitude_attr *attr, int64_t column) {
    for (int i = 0; i < attr->layers; i++) {
        if (column >= attr->first[i] && column < attr->first[i] + attr->count[i]) {
            return i;
        }
    }
    return -1;
}

// What the column is multiplied by. at: where the layers' operands begin.
static double factor(const tr_magnitude_attr *attr, const tr_launch *launch, int at,
                     int64_t column) {
    int layer = layer_of(attr, column);
    if (layer < 0) {
        return 1;
    }
    const float *m = launch->in[at + 2 * layer], *n = launch->in[at + 2 * layer + 1];
    int64_t k = column - attr->first[layer];
    return n[k] == 0 ? 0 : (double)m[k] / (double)n[k];
}

static void scale(const tr_op_desc *desc, const tr_launch *launch, int at,
                  const float *bias) {
    tr_magnitude_sizes s = tr__magnitude_sizes(desc);
    const float *x = launch->in[0]; // [rows, W]
    float *y = launch->out[0];      // [rows, W], may be x
    for (int64_t i = 0; i < s.rows * s.width; i++) {
        double more = bias ? (double)bias[i % s.width] : 0;
        double by = factor(&s.attr, launch, at, i % s.width);
        put(&y[i], (double)x[i] * by + more, launch->accumulate & 1);
    }
}

static void launch_forward(const tr_op_desc *desc, void *state,
                           const tr_launch *launch) {
    (void)state;
    scale(desc, launch, 2, launch->in[1]);
}

static void launch_input(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    scale(desc, launch, 1, NULL);
}

// ---- of magnitudes, of the bias

static void launch_gradient(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    tr_magnitude_sizes s = tr__magnitude_sizes(desc);
    const float *dy = launch->in[0], *x = launch->in[1]; // [rows, W]
    int of_bias = s.attr.layers;
    (void)state;
    for (int64_t c = 0; c < s.width; c++) {
        int layer = layer_of(&s.attr, c);
        double of_m = 0, sum = 0;
        for (int64_t r = 0; r < s.rows; r++) {
            of_m += (double)dy[r * s.width + c] * (double)x[r * s.width + c];
            sum += (double)dy[r * s.width + c];
        }
        if (layer >= 0 && launch->out[layer]) {
            int64_t k = c - s.attr.first[layer];
            double n = (double)((const float *)launch->in[TR_MAGNITUDE_N + layer])[k];
            put((float *)launch->out[layer] + k, n == 0 ? 0 : of_m / n,
                launch->accumulate >> layer & 1);
        }
        if (launch->out[of_bias]) {
            put((float *)launch->out[of_bias] + c, sum,
                launch->accumulate >> of_bias & 1);
        }
    }
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 2, out);
}

const tr_kernel tr__magnitude_reference = {
    .name = "magnitude.reference",
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = launch_forward,
};

const tr_kernel tr__magnitude_input_reference = {
    .name = "magnitude_input.reference",
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = launch_input,
};

const tr_kernel tr__magnitude_gradient_reference = {
    .name = "magnitude_gradient.reference",
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = launch_gradient,
};
