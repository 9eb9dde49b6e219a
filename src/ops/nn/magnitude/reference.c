#include "ops/nn/magnitude/magnitude.h"
#include "ops/operand.h"

#include <math.h>

extern const tr_kernel tr__magnitude_reference, tr__magnitude_gradient_reference;

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

// A row of no length makes nothing.
static double over_length(double x, double squares) {
    return squares == 0 ? 0 : x / sqrt(squares);
}

// What the column is multiplied by.
static double factor(const tr_magnitude_attr *attr, const tr_launch *launch,
                     int64_t column) {
    int layer = layer_of(attr, column);
    if (layer < 0) {
        return 1;
    }
    const float *m = launch->in[1 + 2 * layer], *squares = launch->in[2 + 2 * layer];
    int64_t k = column - attr->first[layer];
    return over_length((double)m[k], (double)squares[k]);
}

static void launch_forward(const tr_op_desc *desc, void *state,
                           const tr_launch *launch) {
    tr_magnitude_sizes s = tr__magnitude_sizes(desc);
    const float *x = launch->in[0]; // [rows, W]
    float *y = launch->out[0];      // [rows, W], may be x
    (void)state;
    for (int64_t i = 0; i < s.rows * s.width; i++) {
        double by = factor(&s.attr, launch, i % s.width);
        put(&y[i], (double)x[i] * by, launch->accumulate & 1);
    }
}

static void launch_gradient(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    tr_magnitude_sizes s = tr__magnitude_sizes(desc);
    const float *dy = launch->in[0], *x = launch->in[1]; // [rows, W]
    (void)state;
    for (int64_t c = 0; c < s.width; c++) {
        int layer = layer_of(&s.attr, c);
        double sum = 0;
        for (int64_t r = 0; r < s.rows; r++) {
            sum += (double)dy[r * s.width + c] * (double)x[r * s.width + c];
        }
        if (layer >= 0 && launch->out[layer]) {
            int64_t k = c - s.attr.first[layer];
            const float *squares = launch->in[TR_MAGNITUDE_S + layer];
            put((float *)launch->out[layer] + k, over_length(sum, (double)squares[k]),
                launch->accumulate >> layer & 1);
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

const tr_kernel tr__magnitude_gradient_reference = {
    .name = "magnitude_gradient.reference",
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = launch_gradient,
};
