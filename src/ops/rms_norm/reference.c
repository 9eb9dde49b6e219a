#include "ops/operand.h"
#include "ops/rms_norm/rms_norm.h"

#include <math.h>
#include <string.h>

extern const tr_kernel tr__rms_norm_reference, tr__rms_norm_backward_reference;

static void put(float *to, double value, bool add) {
    *to = (float)(add ? *to + value : value);
}

static void norm(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_rms_norm_attr attr;
    memcpy(&attr, desc->attr, sizeof attr);
    const float *x = launch->in[0], *weight = launch->in[1]; // [rows, width], [width]
    float *y = launch->out[0], *rstds = launch->out[1];      // [rows, width], [rows]
    int64_t rows = tr__shape_rows(desc->in[0].shape);
    int64_t width = tr__shape_width(desc->in[0].shape);
    for (int64_t r = 0; r < rows; r++) {
        double squares = 0;
        for (int64_t c = 0; c < width; c++) {
            squares += (double)x[r * width + c] * x[r * width + c];
        }
        double rstd = 1 / sqrt(squares / (double)width + (double)attr.epsilon);
        for (int64_t c = 0; c < width && y; c++) {
            put(&y[r * width + c], x[r * width + c] * rstd * weight[c],
                launch->accumulate & 1);
        }
        if (rstds) {
            put(&rstds[r], rstd, launch->accumulate >> 1 & 1);
        }
    }
}

// dx = rstd (dy w - xn mean(dy w xn)), xn = x rstd; dweight = the sum of dy xn.
static void backward(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const float *dy = launch->in[0], *x = launch->in[1]; // [rows, width]
    const float *rstd = launch->in[2], *weight = launch->in[3];
    float *dx = launch->out[0], *dweight = launch->out[1];
    int64_t rows = tr__shape_rows(desc->in[0].shape);
    int64_t width = tr__shape_width(desc->in[0].shape);
    for (int64_t r = 0; r < rows && dx; r++) {
        double along = 0;
        for (int64_t c = 0; c < width; c++) {
            int64_t at = r * width + c;
            along += (double)dy[at] * weight[c] * x[at] * rstd[r] / (double)width;
        }
        for (int64_t c = 0; c < width; c++) {
            int64_t at = r * width + c;
            double change = (double)dy[at] * weight[c] - x[at] * rstd[r] * along;
            put(&dx[at], change * rstd[r], launch->accumulate & 1);
        }
    }
    for (int64_t c = 0; c < width && dweight; c++) {
        double sum = 0;
        for (int64_t r = 0; r < rows; r++) {
            sum += (double)dy[r * width + c] * x[r * width + c] * rstd[r];
        }
        put(&dweight[c], sum, launch->accumulate >> 1 & 1);
    }
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 6, out);
}

const tr_kernel tr__rms_norm_reference = {
    .name = "rms_norm.reference",
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = norm,
};

const tr_kernel tr__rms_norm_backward_reference = {
    .name = "rms_norm_backward.reference",
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = backward,
};
