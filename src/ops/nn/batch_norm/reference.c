#include "ops/nn/batch_norm/operands.h"

extern const tr_kernel tr__batch_stat_reference, tr__batch_stat_backward_reference,
    tr__batch_norm_reference, tr__batch_norm_backward_reference,
    tr__batch_track_reference;

static bool adds(const tr_launch *launch, int i) {
    return launch->accumulate >> i & 1;
}

static void put(float *to, double value, bool add) {
    *to = (float)(add ? *to + value : value);
}

static void stat_launch(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const float *x = launch->in[0]; // [pixels, channels]
    int64_t channels = tr__shape_width(desc->in[0].shape);
    int64_t pixels = tr__pixels_there(launch, desc->in[0].shape);
    for (int64_t c = 0; c < channels; c++) {
        tr_statistic s = {(double)pixels, 0, 0};
        for (int64_t i = 0; i < pixels; i++) {
            s.mean += x[i * channels + c] / (double)pixels;
        }
        for (int64_t i = 0; i < pixels; i++) {
            double apart = x[i * channels + c] - s.mean;
            s.squares += apart * apart;
        }
        for (int k = 0; k < desc->out_count; k++) {
            if (launch->out[k]) {
                tr__statistic_give(launch->out[k], channels, c, s, adds(launch, k));
            }
        }
    }
}

static void stat_backward_launch(const tr_op_desc *desc, void *state,
                                 const tr_launch *launch) {
    (void)state;
    const float *x = launch->in[1]; // [pixels, channels]
    float *dx = launch->out[0];
    int64_t channels = tr__shape_width(desc->in[1].shape);
    int64_t there = tr__pixels_there(launch, desc->in[1].shape) * channels;
    for (int64_t i = 0; i < tr_shape_count(desc->in[1].shape); i++) {
        tr_statistic s = tr__statistic_at(launch->in[2], channels, i % channels);
        tr_statistic grad = tr__statistic_at(launch->in[0], channels, i % channels);
        double a, b;
        tr__statistic_slope(s, grad, &a, &b);
        put(&dx[i], i < there ? a + b * (x[i] - s.mean) : 0, adds(launch, 0));
    }
}

static void norm_launch(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_batch_norm_attr attr = tr__batch_norm_attr(desc);
    const float *x = launch->in[0], *bias = launch->in[3]; // [pixels, channels], [C]
    const float *residual =
        desc->in_count > 4 && desc->in[4].dtype != TR_NONE ? launch->in[4] : NULL;
    float *y = launch->out[0];
    int64_t channels = tr__shape_width(desc->in[0].shape);
    for (int64_t i = 0; i < tr_shape_count(desc->in[0].shape); i++) {
        float mean, scale;
        tr__batch_norm_scale(desc, launch, i % channels, &mean, &scale);
        double value = ((double)x[i] - mean) * scale + bias[i % channels];
        value += residual ? residual[i] : 0;
        put(&y[i], attr.relu && value < 0 ? 0 : value, adds(launch, 0));
    }
}

// The gradient that reaches the sum before the ReLU.
static double behind_relu(const float *dy, const float *y, int64_t i) {
    return y && y[i] <= 0 ? 0 : dy[i];
}

static void norm_backward_channel(const tr_op_desc *desc, const tr_launch *launch,
                                  int64_t c) {
    const float *dy = launch->in[0], *x = launch->in[1]; // [pixels, channels]
    const float *y = desc->in[2].dtype != TR_NONE ? launch->in[2] : NULL;
    const float *weight = launch->in[4];
    float *dx = launch->out[0], *dresidual = launch->out[1];
    int64_t channels = tr__shape_width(desc->in[0].shape);
    tr_statistic s = tr__statistic_at(launch->in[3], channels, c);
    double rstd = tr__statistic_rstd(s, tr__batch_norm_attr(desc).epsilon);
    double sum = 0, sum_xhat = 0;
    for (int64_t i = c; i < tr_shape_count(desc->in[0].shape); i += channels) {
        double d = behind_relu(dy, y, i);
        sum += d;
        sum_xhat += d * (x[i] - s.mean) * rstd;
        if (dresidual) {
            put(&dresidual[i], d, adds(launch, 1));
        }
        if (dx) {
            put(&dx[i], d * weight[c] * rstd, adds(launch, 0));
        }
    }
    tr_statistic grad = tr__statistic_gradient(s, rstd, weight[c], sum, sum_xhat);
    if (launch->out[2]) {
        tr__statistic_add(launch->out[2], channels, c, grad, adds(launch, 2));
    }
    if (launch->out[3]) {
        put((float *)launch->out[3] + c, sum_xhat, adds(launch, 3));
    }
    if (launch->out[4]) {
        put((float *)launch->out[4] + c, sum, adds(launch, 4));
    }
}

static void norm_backward_launch(const tr_op_desc *desc, void *state,
                                 const tr_launch *launch) {
    (void)state;
    for (int64_t c = 0; c < tr__shape_width(desc->in[0].shape); c++) {
        norm_backward_channel(desc, launch, c);
    }
}

// torch.nn.BatchNorm2d: the variance that is tracked is over one element less.
static void track_launch(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_batch_stat_attr attr;
    memcpy(&attr, desc->attr, sizeof attr);
    int64_t channels = tr__shape_width(desc->in[0].shape);
    float *mean = launch->out[0], *variance = launch->out[1];
    for (int64_t c = 0; c < channels; c++) {
        tr_statistic s = tr__statistic_at(launch->in[0], channels, c);
        double now = s.squares / (s.count > 1 ? s.count - 1 : 1);
        if (s.count > 0) {
            mean[c] += attr.momentum * (float)(s.mean - mean[c]);
            variance[c] += attr.momentum * (float)(now - variance[c]);
        }
    }
    (*(int64_t *)launch->out[2])++;
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 8, out);
}

static bool track_supports(const tr_op_desc *desc) {
    return desc->in[0].dtype == TR_F64;
}

const tr_kernel tr__batch_stat_reference = {
    .name = "batch_stat.reference",
    .supports = tr__statistic_supports,
    .cost = cost,
    .launch = stat_launch,
};

const tr_kernel tr__batch_stat_backward_reference = {
    .name = "batch_stat_backward.reference",
    .supports = tr__statistic_supports,
    .cost = cost,
    .launch = stat_backward_launch,
};

const tr_kernel tr__batch_norm_reference = {
    .name = "batch_norm.reference",
    .supports = tr__statistic_supports,
    .cost = cost,
    .launch = norm_launch,
};

const tr_kernel tr__batch_norm_backward_reference = {
    .name = "batch_norm_backward.reference",
    .supports = tr__statistic_supports,
    .cost = cost,
    .launch = norm_backward_launch,
};

const tr_kernel tr__batch_track_reference = {
    .name = "batch_track.reference",
    .supports = track_supports,
    .launch = track_launch,
};
