#include "ops/nn/dropout/element.h"
#include "ops/nn/layer_norm/layer_norm.h"
#include "ops/operand.h"

#include <math.h>

extern const tr_kernel tr__layer_norm_reference, tr__layer_norm_backward_reference;
extern const tr_kernel tr__residual_norm_reference;

// to (NULL: not wanted) = value, or += with `add`.
static void store(float *to, int64_t i, double value, bool add) {
    if (to) {
        to[i] = (float)(add ? to[i] + value : value);
    }
}

// Normalizes row `row`, x [width]; out: y [rows, width], mean [rows], rstd [rows], each
// may be NULL.
static void norm_row(const float *x, const float *w, const float *b, float epsilon,
                     int64_t width, int64_t row, void *const *out,
                     uint32_t accumulate) {
    double mean = 0, variance = 0;
    for (int64_t c = 0; c < width; c++) {
        mean += x[c];
    }
    mean /= (double)width;
    for (int64_t c = 0; c < width; c++) {
        variance += (x[c] - mean) * (x[c] - mean);
    }
    variance /= (double)width;
    double rstd = 1 / sqrt(variance + epsilon);
    for (int64_t c = 0; c < width; c++) {
        store(out[0], row * width + c, (x[c] - mean) * rstd * w[c] + b[c],
              accumulate & 1);
    }
    store(out[1], row, mean, accumulate & 2);
    store(out[2], row, rstd, accumulate & 4);
}

static void layer_norm(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const tr_layer_norm_attr *attr = (const void *)desc->attr;
    const float *x = launch->in[0]; // [rows, width]
    int64_t width = tr__shape_width(desc->in[0].shape);
    int64_t rows = tr__shape_rows(desc->in[0].shape);
    for (int64_t row = 0; row < rows; row++) {
        norm_row(x + row * width, launch->in[1], launch->in[2], attr->epsilon, width,
                 row, launch->out, launch->accumulate);
    }
}

// The row is made in the workspace, so that it can be normalized as it is and then
// written or added.
static void residual_norm(const tr_op_desc *desc, void *state,
                          const tr_launch *launch) {
    (void)state;
    const tr_layer_norm_attr *attr = (const void *)desc->attr;
    const float *r = launch->in[0], *x = launch->in[1]; // [rows, width]
    float *s = launch->workspace;                       // [width]
    tr_shape shape = desc->in[0].shape;
    int64_t width = tr__shape_width(shape), rows = tr__shape_rows(shape);
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t c = 0; c < width; c++) {
            int64_t i = row * width + c;
            float keep = tr__dropout_element(&attr->dropout, launch->run, shape, i);
            s[c] = (float)(r[i] + (double)x[i] * keep);
        }
        norm_row(s, launch->in[2], launch->in[3], attr->epsilon, width, row,
                 launch->out + 1, launch->accumulate >> 1);
        for (int64_t c = 0; c < width; c++) {
            store(launch->out[0], row * width + c, s[c], launch->accumulate & 1);
        }
    }
}

static size_t residual_workspace(const tr_op_desc *desc, const void *state) {
    (void)state;
    return (size_t)tr__shape_width(desc->in[0].shape) * sizeof(float);
}

// The gradients of one row.
static void backward_row(const tr_op_desc *desc, const tr_launch *launch, int64_t row) {
    int64_t width = tr__shape_width(desc->in[0].shape);
    const float *dy = (const float *)launch->in[0] + row * width; // [width]
    const float *x = (const float *)launch->in[1] + row * width;  // [width]
    double mean = ((const float *)launch->in[2])[row];
    double rstd = ((const float *)launch->in[3])[row];
    const float *w = launch->in[4]; // [width]
    double plain = 0, along = 0;
    for (int64_t c = 0; c < width; c++) {
        plain += (double)dy[c] * w[c] / (double)width;
        along += (double)dy[c] * w[c] * (x[c] - mean) * rstd / (double)width;
    }
    for (int64_t c = 0; c < width; c++) {
        double normal = (x[c] - mean) * rstd;
        store(launch->out[0], row * width + c,
              rstd * ((double)dy[c] * w[c] - plain - normal * along),
              launch->accumulate & 1);
    }
}

// The gradients of weight and bias of one column.
static void backward_column(const tr_op_desc *desc, const tr_launch *launch,
                            int64_t c) {
    int64_t width = tr__shape_width(desc->in[0].shape);
    int64_t rows = tr__shape_rows(desc->in[0].shape);
    const float *dy = launch->in[0], *x = launch->in[1];      // [rows, width]
    const float *mean = launch->in[2], *rstd = launch->in[3]; // [rows]
    double dweight = 0, dbias = 0;
    for (int64_t row = 0; row < rows; row++) {
        int64_t i = row * width + c;
        dweight += dy[i] * ((double)x[i] - mean[row]) * rstd[row];
        dbias += dy[i];
    }
    store(launch->out[1], c, dweight, launch->accumulate & 2);
    store(launch->out[2], c, dbias, launch->accumulate & 4);
}

static void layer_norm_backward(const tr_op_desc *desc, void *state,
                                const tr_launch *launch) {
    (void)state;
    int64_t width = tr__shape_width(desc->in[0].shape);
    int64_t rows = tr__shape_rows(desc->in[0].shape);
    for (int64_t row = 0; row < rows; row++) {
        backward_row(desc, launch, row);
    }
    for (int64_t c = 0; c < width; c++) {
        backward_column(desc, launch, c);
    }
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 10, out);
}

const tr_kernel tr__layer_norm_reference = {
    .name = "layer_norm.reference",
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = layer_norm,
};

const tr_kernel tr__layer_norm_backward_reference = {
    .name = "layer_norm_backward.reference",
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = layer_norm_backward,
};

const tr_kernel tr__residual_norm_reference = {
    .name = "residual_norm.reference",
    .supports = tr__desc_f32,
    .cost = cost,
    .workspace = residual_workspace,
    .launch = residual_norm,
};
