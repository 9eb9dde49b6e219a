#include "ops/nn/normalize/normalize.h"
#include "ops/operand.h"

#include <math.h>

extern const tr_kernel tr__normalize_reference, tr__normalize_backward_reference;

static const double least = 1e-12; // length that a row is divided by

static double dot(const float *a, const float *b, int64_t width) {
    double sum = 0;
    for (int64_t c = 0; c < width; c++) {
        sum += (double)a[c] * b[c];
    }
    return sum;
}

// A length that is NaN stays so.
static double divisor(const float *x, int64_t width) {
    double length = sqrt(dot(x, x, width));
    return length < least ? least : length;
}

static void put(float *to, double value, bool add) {
    *to = (float)(add ? *to + value : value);
}

static void normalize(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const float *x = launch->in[0]; // [rows, width]
    float *y = launch->out[0];      // [rows, width]
    int64_t rows = tr__shape_rows(desc->in[0].shape);
    int64_t width = tr__shape_width(desc->in[0].shape);
    for (int64_t r = 0; r < rows; r++, x += width, y += width) {
        double length = divisor(x, width);
        for (int64_t c = 0; c < width; c++) {
            put(y + c, x[c] / length, launch->accumulate & 1);
        }
    }
}

// Of the part of dy that is along x, nothing goes back: dx = (dy - y (y . dy)) / |x|.
static void normalize_backward(const tr_op_desc *desc, void *state,
                               const tr_launch *launch) {
    (void)state;
    const float *dy = launch->in[0], *x = launch->in[1]; // [rows, width]
    float *dx = launch->out[0];                          // [rows, width]
    int64_t rows = tr__shape_rows(desc->in[1].shape);
    int64_t width = tr__shape_width(desc->in[1].shape);
    for (int64_t r = 0; r < rows; r++, dy += width, x += width, dx += width) {
        double length = divisor(x, width);
        double along = length > least ? dot(x, dy, width) / length / length : 0;
        for (int64_t c = 0; c < width; c++) {
            put(dx + c, (dy[c] - x[c] * along) / length, launch->accumulate & 1);
        }
    }
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 4, out);
}

const tr_kernel tr__normalize_reference = {
    .name = "normalize.reference",
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = normalize,
};

const tr_kernel tr__normalize_backward_reference = {
    .name = "normalize_backward.reference",
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = normalize_backward,
};
