#include "ops/nn/conv2d/sizes.h"

extern const tr_kernel tr__conv2d_reference, tr__conv2d_backward_input_reference,
    tr__conv2d_backward_weight_reference;

// Element [b, i, j, c] of an image; -1 where it lies outside.
static int64_t image_at(int64_t height, int64_t width, int64_t channels, int64_t b,
                        int64_t i, int64_t j, int64_t c) {
    bool inside = i >= 0 && i < height && j >= 0 && j < width;
    return inside ? ((b * height + i) * width + j) * channels + c : -1;
}

static int64_t weight_at(const tr_conv2d_sizes *s, int64_t o, int64_t c, int64_t p,
                         int64_t q) {
    return ((o * (s->in / s->groups) + c) * s->p + p) * s->q + q;
}

// The channel of x that is number c of the group of output channel o.
static int64_t channel(const tr_conv2d_sizes *s, int64_t o, int64_t c) {
    return o / (s->out / s->groups) * (s->in / s->groups) + c;
}

// The element of x that y[b, i, j] sees through [p, q]; -1: none.
static int64_t seen(const tr_conv2d_sizes *s, int64_t b, int64_t i, int64_t j,
                    int64_t p, int64_t q, int64_t c) {
    return image_at(s->height, s->width, s->in, b,
                    s->stride[0] * i + s->dilation[0] * p - s->padding[0],
                    s->stride[1] * j + s->dilation[1] * q - s->padding[1], c);
}

static void put(float *to, double value, bool add) {
    *to = (float)(add ? *to + value : value);
}

static double output_element(const tr_conv2d_sizes *s, const float *x,
                             const float *weight, int64_t b, int64_t i, int64_t j,
                             int64_t o) {
    double sum = 0;
    for (int64_t p = 0; p < s->p; p++) {
        for (int64_t q = 0; q < s->q; q++) {
            for (int64_t c = 0; c < s->in / s->groups; c++) {
                int64_t at = seen(s, b, i, j, p, q, channel(s, o, c));
                sum += at < 0 ? 0 : (double)x[at] * weight[weight_at(s, o, c, p, q)];
            }
        }
    }
    return sum;
}

static void output_launch(const tr_op_desc *desc, void *state,
                          const tr_launch *launch) {
    (void)state;
    tr_conv2d_sizes s = tr__conv2d_output_sizes(desc);
    const float *bias = tr__conv2d_has_bias(desc) ? launch->in[2] : NULL;
    float *y = launch->out[0];
    for (int64_t at = 0; at < s.batch * s.rows * s.columns * s.out; at++) {
        int64_t o = at % s.out, j = at / s.out % s.columns;
        int64_t i = at / s.out / s.columns % s.rows,
                b = at / s.out / s.columns / s.rows;
        double value = output_element(&s, launch->in[0], launch->in[1], b, i, j, o);
        put(&y[at], value + (bias ? bias[o] : 0), launch->accumulate & 1);
    }
}

// dx[b, i, j, c]: of all windows that see it.
static double input_element(const tr_conv2d_sizes *s, const float *dy,
                            const float *weight, int64_t b, int64_t i, int64_t j,
                            int64_t c) {
    int64_t in = s->in / s->groups, out = s->out / s->groups, first = c / in * out;
    double sum = 0;
    for (int64_t p = 0; p < s->p; p++) {
        for (int64_t q = 0; q < s->q; q++) {
            int64_t from_i = i + s->padding[0] - s->dilation[0] * p;
            int64_t from_j = j + s->padding[1] - s->dilation[1] * q;
            if (from_i % s->stride[0] || from_j % s->stride[1]) {
                continue;
            }
            int64_t at = image_at(s->rows, s->columns, s->out, b, from_i / s->stride[0],
                                  from_j / s->stride[1], 0);
            for (int64_t o = first; at >= 0 && o < first + out; o++) {
                sum += (double)dy[at + o] * weight[weight_at(s, o, c % in, p, q)];
            }
        }
    }
    return sum;
}

static void input_launch(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_conv2d_sizes s = tr__conv2d_input_sizes(desc);
    float *dx = launch->out[0];
    for (int64_t at = 0; at < s.batch * s.height * s.width * s.in; at++) {
        int64_t c = at % s.in, j = at / s.in % s.width;
        int64_t i = at / s.in / s.width % s.height, b = at / s.in / s.width / s.height;
        put(&dx[at], input_element(&s, launch->in[0], launch->in[1], b, i, j, c),
            launch->accumulate & 1);
    }
}

static double weight_element(const tr_conv2d_sizes *s, const float *dy, const float *x,
                             int64_t o, int64_t c, int64_t p, int64_t q) {
    double sum = 0;
    for (int64_t b = 0; b < s->batch; b++) {
        for (int64_t i = 0; i < s->rows; i++) {
            for (int64_t j = 0; j < s->columns; j++) {
                int64_t at = seen(s, b, i, j, p, q, channel(s, o, c));
                int64_t from = image_at(s->rows, s->columns, s->out, b, i, j, o);
                sum += at < 0 ? 0 : (double)dy[from] * x[at];
            }
        }
    }
    return sum;
}

static void weight_launch(const tr_op_desc *desc, void *state,
                          const tr_launch *launch) {
    (void)state;
    tr_conv2d_sizes s = tr__conv2d_weight_sizes(desc);
    const float *dy = launch->in[0];
    float *dweight = launch->out[0], *dbias = launch->out[1];
    int64_t in = s.in / s.groups;
    for (int64_t at = 0; dweight && at < s.out * in * s.p * s.q; at++) {
        int64_t q = at % s.q, p = at / s.q % s.p;
        int64_t c = at / s.q / s.p % in, o = at / s.q / s.p / in;
        put(&dweight[at], weight_element(&s, dy, launch->in[1], o, c, p, q),
            launch->accumulate & 1);
    }
    for (int64_t o = 0; dbias && desc->out_count > 1 && o < s.out; o++) {
        double sum = 0;
        for (int64_t at = o; at < s.batch * s.rows * s.columns * s.out; at += s.out) {
            sum += dy[at];
        }
        put(&dbias[o], sum, launch->accumulate >> 1 & 1);
    }
}

const tr_kernel tr__conv2d_reference = {
    .name = "conv2d.reference",
    .supports = tr__desc_f32,
    .cost = tr__conv2d_output_cost,
    .launch = output_launch,
};

const tr_kernel tr__conv2d_backward_input_reference = {
    .name = "conv2d_backward_input.reference",
    .supports = tr__desc_f32,
    .cost = tr__conv2d_input_cost,
    .launch = input_launch,
};

const tr_kernel tr__conv2d_backward_weight_reference = {
    .name = "conv2d_backward_weight.reference",
    .supports = tr__desc_f32,
    .cost = tr__conv2d_weight_cost,
    .launch = weight_launch,
};
