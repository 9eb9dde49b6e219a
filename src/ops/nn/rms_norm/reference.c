#include "ops/nn/rms_norm/rms_norm.h"
#include "ops/operand.h"

#include <math.h>
#include <string.h>

extern const tr_kernel tr__rms_norm_reference, tr__rms_norm_backward_reference;

static void put(float *to, double value, bool add) {
    *to = (float)(add ? *to + value : value);
}

// x, y: [depth]. Returns 1 / the root mean square.
static double norm_head(const tr_rms_norm_sizes *s, const float *x, const float *weight,
                        float *y, bool add) {
    double squares = 0;
    for (int64_t c = 0; c < s->depth; c++) {
        squares += (double)x[c] * x[c];
    }
    double rstd = 1 / sqrt(squares / (double)s->depth + (double)s->epsilon);
    for (int64_t c = 0; c < s->depth && y; c++) {
        put(&y[c], x[c] * rstd * weight[c], add);
    }
    return rstd;
}

// What lies behind the heads of a row.
static void pass(const tr_rms_norm_sizes *s, const float *x, float *y, bool add) {
    for (int64_t c = s->heads * s->depth; c < s->width; c++) {
        put(&y[c], x[c], add);
    }
}

static void norm(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_rms_norm_sizes s = tr__rms_norm_sizes(desc->in[0].shape, desc->attr);
    const float *x = launch->in[0], *weight = launch->in[1]; // [rows, width]
    float *y = launch->out[0], *rstds = launch->out[1]; // [rows, width], [rows, heads]
    bool add = launch->accumulate & 1;
    for (int64_t i = 0; i < s.rows * s.heads; i++) {
        int64_t head = i % s.heads, at = i / s.heads * s.width + head * s.depth;
        double rstd = norm_head(&s, x + at, weight + tr__rms_norm_weight(&s, head),
                                y ? y + at : NULL, add);
        if (rstds) {
            put(&rstds[i], rstd, launch->accumulate >> 1 & 1);
        }
    }
    for (int64_t r = 0; r < s.rows && y; r++) {
        pass(&s, x + r * s.width, y + r * s.width, add);
    }
}

// dx = rstd (dy w - xn mean(dy w xn)), xn = x rstd. All: [depth].
static void backward_head(const tr_rms_norm_sizes *s, const float *dy, const float *x,
                          double rstd, const float *weight, float *dx, bool add) {
    double along = 0;
    for (int64_t c = 0; c < s->depth; c++) {
        along += (double)dy[c] * weight[c] * x[c] * rstd / (double)s->depth;
    }
    for (int64_t c = 0; c < s->depth; c++) {
        double change = (double)dy[c] * weight[c] - x[c] * rstd * along;
        put(&dx[c], change * rstd, add);
    }
}

// dweight = the sum of dy xn.
static void weight_gradient(const tr_rms_norm_sizes *s, const tr_launch *launch,
                            float *dweight) {
    const float *dy = launch->in[0], *x = launch->in[1]; // [rows, width]
    const float *rstd = launch->in[2];                   // [rows, heads]
    for (int64_t w = 0; w < s->weights; w++) {
        double sum = 0;
        for (int64_t i = 0; i < s->rows * s->heads; i++) {
            int64_t head = i % s->heads;
            int64_t at = i / s->heads * s->width + head * s->depth + w % s->depth;
            bool own = tr__rms_norm_weight(s, head) == w / s->depth * s->depth;
            sum += own ? (double)dy[at] * x[at] * rstd[i] : 0;
        }
        put(&dweight[w], sum, launch->accumulate >> 1 & 1);
    }
}

static void backward(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_rms_norm_sizes s = tr__rms_norm_sizes(desc->in[0].shape, desc->attr);
    const float *dy = launch->in[0], *x = launch->in[1];        // [rows, width]
    const float *rstd = launch->in[2], *weight = launch->in[3]; // [rows, heads]
    float *dx = launch->out[0], *dweight = launch->out[1];
    bool add = launch->accumulate & 1;
    for (int64_t i = 0; i < s.rows * s.heads && dx; i++) {
        int64_t head = i % s.heads, at = i / s.heads * s.width + head * s.depth;
        backward_head(&s, dy + at, x + at, rstd[i],
                      weight + tr__rms_norm_weight(&s, head), dx + at, add);
    }
    for (int64_t r = 0; r < s.rows && dx; r++) {
        pass(&s, dy + r * s.width, dx + r * s.width, add);
    }
    if (dweight) {
        weight_gradient(&s, launch, dweight);
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
