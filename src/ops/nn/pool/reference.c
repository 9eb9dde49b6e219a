#include "ops/nn/pool/sizes.h"

#include <math.h>

extern const tr_kernel tr__pool_reference, tr__pool_backward_reference;

// Element of a window that is its maximum, the first of equal ones; NaN is larger.
static int64_t largest(const tr_pool_sizes *s, const float *x, int64_t b,
                       const tr_window *w, int64_t c) {
    int64_t best = -1;
    for (int64_t i = w->top; i < w->bottom; i++) {
        for (int64_t j = w->left; j < w->right; j++) {
            int64_t at = tr__pool_at(s, b, i, j) + c;
            best = best < 0 || x[at] > x[best] || isnan(x[at]) ? at : best;
        }
    }
    return best;
}

static double average(const tr_pool_sizes *s, const float *x, int64_t b,
                      const tr_window *w, int64_t c) {
    double sum = 0;
    for (int64_t i = w->top; i < w->bottom; i++) {
        for (int64_t j = w->left; j < w->right; j++) {
            sum += x[tr__pool_at(s, b, i, j) + c];
        }
    }
    return sum / (double)(s->kernel_h * s->kernel_w);
}

static void pool(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_pool_sizes s = tr__pool_sizes(desc, desc->in[0].shape);
    const float *x = launch->in[0]; // [batch, height, width, channels]
    float *y = launch->out[0];      // [batch, rows, columns, channels]
    for (int64_t at = 0; at < s.batch * s.rows * s.columns * s.channels; at++) {
        int64_t c = at % s.channels, window = at / s.channels;
        int64_t b = window / s.columns / s.rows;
        tr_window w =
            tr__pool_window(&s, window / s.columns % s.rows, window % s.columns);
        float value =
            s.max ? x[largest(&s, x, b, &w, c)] : (float)average(&s, x, b, &w, c);
        y[at] = launch->accumulate & 1 ? y[at] + value : value;
    }
}

static void spread(const tr_pool_sizes *s, float *dx, float value, int64_t b,
                   const tr_window *w, int64_t c) {
    for (int64_t i = w->top; i < w->bottom; i++) {
        for (int64_t j = w->left; j < w->right; j++) {
            dx[tr__pool_at(s, b, i, j) + c] += value;
        }
    }
}

static void backward(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_pool_sizes s = tr__pool_sizes(desc, desc->in[1].shape);
    const float *dy = launch->in[0], *x = launch->in[1];
    float *dx = launch->out[0]; // [batch, height, width, channels]
    if (!(launch->accumulate & 1)) {
        memset(dx, 0, (size_t)tr_tensor_bytes(desc->out[0]));
    }
    for (int64_t at = 0; at < s.batch * s.rows * s.columns * s.channels; at++) {
        int64_t c = at % s.channels, window = at / s.channels;
        int64_t b = window / s.columns / s.rows;
        tr_window w =
            tr__pool_window(&s, window / s.columns % s.rows, window % s.columns);
        if (s.max) {
            dx[largest(&s, x, b, &w, c)] += dy[at];
        } else {
            spread(&s, dx, dy[at] / (float)(s.kernel_h * s.kernel_w), b, &w, c);
        }
    }
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 1, out);
}

const tr_kernel tr__pool_reference = {
    .name = "pool.reference",
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = pool,
};

const tr_kernel tr__pool_backward_reference = {
    .name = "pool_backward.reference",
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = backward,
};
