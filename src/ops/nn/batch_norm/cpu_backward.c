#include "backend/cpu/isa.h"
#include "ops/nn/batch_norm/cpu_chunks.h"

extern const tr_kernel TR_ISA_NAME(tr__batch_stat_backward_kernel);
extern const tr_kernel TR_ISA_NAME(tr__batch_norm_backward_kernel);

enum { BACKWARD_WEIGHT = 3, SLOPE_WEIGHT = 2 };

static int left_of(int64_t channels, int64_t c) {
    return channels - c < TR_VW ? (int)(channels - c) : TR_VW;
}

// ---- by the statistic given

// What all threads need of each channel, and their sums. The workspace: mean, then dx
// over dy, [padded] floats each; then of each thread the sums of dy and of dy (x -
// mean), [padded] doubles each.
typedef struct shared {
    int64_t channels, padded, pixels;
    float *mean, *slope;
    double *sums;
} shared;

static shared shared_of(const tr_op_desc *desc, void *workspace) {
    int64_t channels = tr__shape_width(desc->in[0].shape);
    shared s = {.channels = channels,
                .padded = tr__channels_padded(channels),
                .pixels = tr__pixels(desc->in[0].shape)};
    s.mean = workspace;
    s.slope = s.mean + s.padded;
    s.sums = (double *)(void *)(s.slope + s.padded);
    return s;
}

static int backward_threads(const tr_op_desc *desc) {
    return tr__threads_for(tr_shape_count(desc->in[0].shape), BACKWARD_WEIGHT,
                           desc->target.workers);
}

static size_t backward_workspace(const tr_op_desc *desc, const void *state) {
    (void)state;
    size_t padded = (size_t)tr__channels_padded(tr__shape_width(desc->in[0].shape));
    return 2 * padded * sizeof(float) +
           (size_t)backward_threads(desc) * 2 * padded * sizeof(double);
}

// A vector of channels of some pixels. What nobody wants is NULL.
typedef struct column {
    const float *dy, *x, *y;
    float *dx, *dresidual;
    int64_t channels, pixels;
    tr_vf mean, slope;
    bool add_dx, add_dresidual;
    tr_chunk_sums sums[2];
} column;

__attribute__((always_inline)) static inline void
backward_column(column *k, bool relu, bool dresidual, bool simple, int count) {
    tr_chunk_sums plain = {0}, along = {0};
    for (int64_t i = 0; i < k->pixels; i++) {
        int64_t at = i * k->channels;
        tr_vf d = tr__chunk_load(k->dy + at, count);
        if (relu) {
            d = tr_v_behind_relu(d, tr__chunk_load(k->y + at, count));
        }
        tr_vf apart = tr__chunk_load(k->x + at, count) - k->mean;
        plain += tr__chunk_wide(d);
        along += tr__chunk_wide(d * apart);
        if (dresidual) {
            bool add = !simple && k->add_dresidual;
            tr_vf before = add ? tr__chunk_load(k->dresidual + at, count) : tr_v_set(0);
            tr__chunk_store(k->dresidual + at, before + d, count);
        }
        if (simple || k->dx) {
            bool add = !simple && k->add_dx;
            tr_vf before = add ? tr__chunk_load(k->dx + at, count) : tr_v_set(0);
            tr__chunk_store(k->dx + at, before + d * k->slope, count);
        }
    }
    k->sums[0] = plain;
    k->sums[1] = along;
}

// The common ways have loops of their own.
static void backward_vector(column *k, int count) {
    bool simple = count == TR_VW && k->y && k->dx && !k->add_dx && !k->add_dresidual;
    if (simple && k->dresidual) {
        backward_column(k, true, true, true, TR_VW);
    } else if (simple) {
        backward_column(k, true, false, true, TR_VW);
    } else {
        backward_column(k, k->y != NULL, k->dresidual != NULL, false, count);
    }
}

static const float *offset(const void *base, int64_t at) {
    return base ? (const float *)base + at : NULL;
}

static void backward_pixels(const tr_op_desc *desc, const tr_launch *launch,
                            const shared *s, tr_range range, double *sums) {
    int64_t chunk = tr__chunk_pixels(s->channels);
    bool relu = desc->in[2].dtype != TR_NONE;
    column k = {.channels = s->channels,
                .add_dx = launch->accumulate & 1,
                .add_dresidual = launch->accumulate >> 1 & 1};
    memset(sums, 0, (size_t)(2 * s->padded) * sizeof *sums);
    for (int64_t i = range.begin; i < range.end; i += chunk) {
        k.pixels = range.end - i < chunk ? range.end - i : chunk;
        for (int64_t c = 0; c < s->channels; c += TR_VW) {
            int count = left_of(s->channels, c);
            int64_t at = i * s->channels + c;
            k.dy = offset(launch->in[0], at);
            k.x = offset(launch->in[1], at);
            k.y = relu ? offset(launch->in[2], at) : NULL;
            k.dx = (float *)(uintptr_t)offset(launch->out[0], at);
            k.dresidual = (float *)(uintptr_t)offset(launch->out[1], at);
            k.mean = tr_v_load(s->mean + c);
            k.slope = tr_v_load(s->slope + c);
            backward_vector(&k, count);
            tr__chunk_add(sums + c, &k.sums[0], count);
            tr__chunk_add(sums + s->padded + c, &k.sums[1], count);
        }
    }
}

typedef struct backward_job {
    const tr_op_desc *desc;
    const tr_launch *launch;
    shared s;
} backward_job;

static void backward_part(const void *work, int t, int threads) {
    const backward_job *j = work;
    backward_pixels(j->desc, j->launch, &j->s,
                    tr__range_part(j->s.pixels, 1, t, threads),
                    j->s.sums + 2 * t * j->s.padded);
}

static void give(float *to, double value, bool add) {
    *to = (float)(add ? *to + value : value);
}

// Adds up the threads' sums, in their order.
static void give_sums(const tr_op_desc *desc, const tr_launch *launch, const shared *s,
                      int threads) {
    const float *weight = launch->in[4];
    float epsilon = tr__batch_norm_attr(desc).epsilon;
    for (int64_t c = 0; c < s->channels; c++) {
        tr_statistic stat = tr__statistic_at(launch->in[3], s->channels, c);
        double rstd = tr__statistic_rstd(stat, epsilon), plain = 0, along = 0;
        for (int t = 0; t < threads; t++) {
            plain += s->sums[2 * t * s->padded + c];
            along += s->sums[(2 * t + 1) * s->padded + c];
        }
        along *= rstd;
        if (launch->out[2]) {
            tr_statistic grad =
                tr__statistic_gradient(stat, rstd, weight[c], plain, along);
            tr__statistic_add(launch->out[2], s->channels, c, grad,
                              launch->accumulate >> 2 & 1);
        }
        if (launch->out[3]) {
            give((float *)launch->out[3] + c, along, launch->accumulate >> 3 & 1);
        }
        if (launch->out[4]) {
            give((float *)launch->out[4] + c, plain, launch->accumulate >> 4 & 1);
        }
    }
}

static void launch_backward(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    (void)state;
    shared s = shared_of(desc, launch->workspace);
    const float *weight = launch->in[4];
    float epsilon = tr__batch_norm_attr(desc).epsilon;
    for (int64_t c = 0; c < s.channels; c++) {
        tr_statistic stat = tr__statistic_at(launch->in[3], s.channels, c);
        s.mean[c] = (float)stat.mean;
        s.slope[c] = (float)(weight[c] * tr__statistic_rstd(stat, epsilon));
    }
    int threads = backward_threads(desc);
    tr__parts_run(threads, backward_part, &(backward_job){desc, launch, s});
    give_sums(desc, launch, &s, threads);
}

// ---- by the statistic

static size_t slope_workspace(const tr_op_desc *desc, const void *state) {
    (void)state;
    int64_t channels = tr__shape_width(desc->in[1].shape);
    return (size_t)(3 * tr__channels_padded(channels)) * sizeof(float);
}

// dx = from + slope (x - mean), a vector of channels of some pixels.
typedef struct line {
    tr_vf mean, from, slope;
} line;

__attribute__((always_inline)) static inline void
slope_column(const float *x, float *dx, int64_t channels, int64_t pixels,
             const line *by, bool add, int count) {
    tr_vf mean = by->mean, from = by->from, slope = by->slope;
    for (int64_t i = 0; i < pixels; i++) {
        tr_vf value = from + slope * (tr__chunk_load(x + i * channels, count) - mean);
        value += add ? tr__chunk_load(dx + i * channels, count) : tr_v_set(0);
        tr__chunk_store(dx + i * channels, value, count);
    }
}

static void slope_pixels(const tr_op_desc *desc, const tr_launch *launch,
                         tr_range range) {
    const float *x = launch->in[1]; // [pixels, channels]
    float *dx = launch->out[0];
    int64_t channels = tr__shape_width(desc->in[1].shape);
    int64_t chunk = tr__chunk_pixels(channels);
    const float *mean = launch->workspace;
    const float *from = mean + tr__channels_padded(channels);
    const float *slope = from + tr__channels_padded(channels);
    bool add = launch->accumulate & 1;
    for (int64_t i = range.begin; i < range.end; i += chunk) {
        int64_t pixels = range.end - i < chunk ? range.end - i : chunk;
        for (int64_t c = 0; c < channels; c += TR_VW) {
            int count = left_of(channels, c);
            int64_t at = i * channels + c;
            line by = {tr_v_load(mean + c), tr_v_load(from + c), tr_v_load(slope + c)};
            if (count == TR_VW && add) {
                slope_column(x + at, dx + at, channels, pixels, &by, true, TR_VW);
            } else {
                slope_column(x + at, dx + at, channels, pixels, &by, add, count);
            }
        }
    }
}

static void slope_part(const void *work, int t, int threads) {
    const backward_job *j = work;
    slope_pixels(j->desc, j->launch, tr__range_part(j->s.pixels, 1, t, threads));
}

static void launch_slope(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    int64_t channels = tr__shape_width(desc->in[1].shape);
    int64_t there = tr__pixels_there(launch, desc->in[1].shape);
    int64_t missing = tr__pixels(desc->in[1].shape) - there;
    float *mean = launch->workspace, *from = mean + tr__channels_padded(channels);
    float *slope = from + tr__channels_padded(channels);
    for (int64_t c = 0; c < channels; c++) {
        tr_statistic s = tr__statistic_at(launch->in[2], channels, c);
        double a, b;
        tr__statistic_slope(s, tr__statistic_at(launch->in[0], channels, c), &a, &b);
        mean[c] = (float)s.mean;
        from[c] = (float)a;
        slope[c] = (float)b;
    }
    int threads = tr__threads_for(there * channels, SLOPE_WEIGHT, desc->target.workers);
    tr__parts_run(threads, slope_part,
                  &(backward_job){desc, launch, {.pixels = there}});
    if (missing > 0 && !(launch->accumulate & 1)) {
        memset((float *)launch->out[0] + there * channels, 0,
               (size_t)(missing * channels) * sizeof(float));
    }
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 7, out);
}

static void slope_cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 3, out);
}

const tr_kernel TR_ISA_NAME(tr__batch_norm_backward_kernel) = {
    .name = "batch_norm_backward.cpu." TR_ISA_TEXT,
    .supports = tr__statistic_supports,
    .cost = cost,
    .workspace = backward_workspace,
    .launch = launch_backward,
};

const tr_kernel TR_ISA_NAME(tr__batch_stat_backward_kernel) = {
    .name = "batch_stat_backward.cpu." TR_ISA_TEXT,
    .supports = tr__statistic_supports,
    .cost = slope_cost,
    .workspace = slope_workspace,
    .launch = launch_slope,
};
