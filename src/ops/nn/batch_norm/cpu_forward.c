#include "backend/cpu/isa.h"
#include "ops/nn/batch_norm/cpu_chunks.h"

extern const tr_kernel TR_ISA_NAME(tr__batch_stat_kernel);
extern const tr_kernel TR_ISA_NAME(tr__batch_norm_kernel);

enum { STAT_WEIGHT = 1, NORM_WEIGHT = 2, WAYS = 2 };

// ---- statistics

// One thread's pixels, and what it finds: of each channel the sum, and that of the
// squares, which f64 holds exactly enough for their difference to lose nothing.
// [tr__channels_padded] each.
typedef struct stat_part {
    double *sum, *squares;
    int64_t pixels;
} stat_part;

static size_t part_bytes(int64_t channels) {
    return (size_t)tr__channels_padded(channels) * 2 * sizeof(double);
}

static stat_part part_at(void *workspace, int64_t channels, int thread) {
    int64_t padded = tr__channels_padded(channels);
    double *sum = (double *)workspace + 2 * thread * padded;
    return (stat_part){sum, sum + padded, 0};
}

// x: [pixels, channels], the first `count` of a vector of channels.
__attribute__((always_inline)) static inline void sum_column(const float *x,
                                                             int64_t channels,
                                                             int64_t pixels, int count,
                                                             tr_chunk_sums sums[2]) {
    tr_chunk_sums plain[WAYS] = {{0}}, squares[WAYS] = {{0}};
    int64_t i = 0;
    for (; i + WAYS <= pixels; i += WAYS) {
        for (int k = 0; k < WAYS; k++) {
            tr_chunk_sums v =
                tr__chunk_wide(tr__chunk_load(x + (i + k) * channels, count));
            plain[k] += v;
            squares[k] += v * v;
        }
    }
    for (; i < pixels; i++) {
        tr_chunk_sums v = tr__chunk_wide(tr__chunk_load(x + i * channels, count));
        plain[0] += v;
        squares[0] += v * v;
    }
    sums[0] = plain[0] + plain[1];
    sums[1] = squares[0] + squares[1];
}

static void sum_vector(const float *x, int64_t channels, int64_t pixels, int count,
                       tr_chunk_sums sums[2]) {
    if (count == TR_VW) {
        sum_column(x, channels, pixels, TR_VW, sums);
    } else {
        sum_column(x, channels, pixels, count, sums);
    }
}

static int left_of(int64_t channels, int64_t c) {
    return channels - c < TR_VW ? (int)(channels - c) : TR_VW;
}

// x: [part->pixels, channels]
static void sum_part(const float *x, int64_t channels, const stat_part *part) {
    int64_t chunk = tr__chunk_pixels(channels);
    memset(part->sum, 0, part_bytes(channels));
    for (int64_t i = 0; i < part->pixels; i += chunk) {
        int64_t pixels = part->pixels - i < chunk ? part->pixels - i : chunk;
        for (int64_t c = 0; c < channels; c += TR_VW) {
            int count = left_of(channels, c);
            tr_chunk_sums sums[2];
            sum_vector(x + i * channels + c, channels, pixels, count, sums);
            tr__chunk_add(part->sum + c, &sums[0], count);
            tr__chunk_add(part->squares + c, &sums[1], count);
        }
    }
}

static tr_statistic statistic_of(const stat_part *part, int64_t c) {
    double count = (double)part->pixels;
    if (part->pixels == 0) {
        return (tr_statistic){0, 0, 0};
    }
    double mean = part->sum[c] / count;
    double squares = part->squares[c] - mean * part->sum[c];
    return (tr_statistic){count, mean, squares < 0 ? 0 : squares};
}

static int stat_threads(const tr_op_desc *desc) {
    return tr__threads_for(tr_shape_count(desc->in[0].shape), STAT_WEIGHT,
                           desc->target.workers);
}

static size_t stat_workspace(const tr_op_desc *desc, const void *state) {
    (void)state;
    return (size_t)stat_threads(desc) * part_bytes(tr__shape_width(desc->in[0].shape));
}

static void give_statistics(const tr_op_desc *desc, const tr_launch *launch,
                            int threads) {
    int64_t channels = tr__shape_width(desc->in[0].shape);
    int64_t pixels = tr__pixels_there(launch, desc->in[0].shape);
    for (int64_t c = 0; c < channels; c++) {
        tr_statistic s = {0, 0, 0};
        for (int t = 0; t < threads; t++) {
            tr_range r = tr__range_part(pixels, 1, t, threads);
            stat_part part = part_at(launch->workspace, channels, t);
            part.pixels = r.end - r.begin;
            s = tr__statistic_merge(s, statistic_of(&part, c));
        }
        for (int k = 0; k < desc->out_count; k++) {
            if (launch->out[k]) {
                tr__statistic_give(launch->out[k], channels, c, s,
                                   launch->accumulate >> k & 1);
            }
        }
    }
}

typedef struct job {
    const tr_op_desc *desc;
    const tr_launch *launch;
} job;

static void stat_of_part(const void *work, int t, int threads) {
    const job *j = work;
    const float *x = j->launch->in[0]; // [pixels, channels]
    int64_t channels = tr__shape_width(j->desc->in[0].shape);
    int64_t pixels = tr__pixels_there(j->launch, j->desc->in[0].shape);
    tr_range r = tr__range_part(pixels, 1, t, threads);
    stat_part part = part_at(j->launch->workspace, channels, t);
    part.pixels = r.end - r.begin;
    if (part.pixels > 0) {
        sum_part(x + r.begin * channels, channels, &part);
    }
}

static void launch_stat(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    int threads = stat_threads(desc);
    tr__parts_run(threads, stat_of_part, &(job){desc, launch});
    give_statistics(desc, launch, threads);
}

// ---- the batch normalized

// A vector of channels of some pixels.
typedef struct column {
    const float *x, *residual; // NULL: none
    float *y;
    int64_t channels, pixels;
    tr_vf mean, scale, bias;
    bool relu, add;
} column;

__attribute__((always_inline)) static inline void
norm_column(const column *k, bool residual, bool relu, int count) {
    for (int64_t i = 0; i < k->pixels; i++) {
        int64_t at = i * k->channels;
        tr_vf value = (tr__chunk_load(k->x + at, count) - k->mean) * k->scale + k->bias;
        value += residual ? tr__chunk_load(k->residual + at, count) : tr_v_set(0);
        value = relu ? tr_v_relu(value) : value;
        value += k->add ? tr__chunk_load(k->y + at, count) : tr_v_set(0);
        tr__chunk_store(k->y + at, value, count);
    }
}

// The common ways have loops of their own.
static void norm_vector(const column *k, int count) {
    if (count < TR_VW || k->add || !k->relu) {
        norm_column(k, k->residual != NULL, k->relu, count);
    } else if (k->residual) {
        norm_column(k, true, true, TR_VW);
    } else {
        norm_column(k, false, true, TR_VW);
    }
}

static void norm_pixels(const tr_op_desc *desc, const tr_launch *launch,
                        tr_range range) {
    int64_t channels = tr__shape_width(desc->in[0].shape);
    int64_t chunk = tr__chunk_pixels(channels), padded = tr__channels_padded(channels);
    const float *mean = launch->workspace, *scale = mean + padded;
    const float *bias = launch->in[3];
    bool residual = desc->in_count > 4 && desc->in[4].dtype != TR_NONE;
    column k = {.channels = channels,
                .relu = tr__batch_norm_attr(desc).relu,
                .add = launch->accumulate & 1};
    for (int64_t i = range.begin; i < range.end; i += chunk) {
        k.pixels = range.end - i < chunk ? range.end - i : chunk;
        for (int64_t c = 0; c < channels; c += TR_VW) {
            int count = left_of(channels, c);
            int64_t at = i * channels + c;
            k.x = (const float *)launch->in[0] + at;
            k.y = (float *)launch->out[0] + at;
            k.residual = residual ? (const float *)launch->in[4] + at : NULL;
            k.mean = tr_v_load(mean + c);
            k.scale = tr_v_load(scale + c);
            k.bias = tr__chunk_load(bias + c, count);
            norm_vector(&k, count);
        }
    }
}

static void norm_part(const void *work, int t, int threads) {
    const job *j = work;
    int64_t pixels = tr__pixels(j->desc->in[0].shape);
    norm_pixels(j->desc, j->launch, tr__range_part(pixels, 1, t, threads));
}

static size_t norm_workspace(const tr_op_desc *desc, const void *state) {
    (void)state;
    int64_t channels = tr__shape_width(desc->in[0].shape);
    return (size_t)(2 * tr__channels_padded(channels)) * sizeof(float);
}

static void launch_norm(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    int64_t channels = tr__shape_width(desc->in[0].shape);
    int64_t pixels = tr__pixels(desc->in[0].shape);
    float *mean = launch->workspace, *scale = mean + tr__channels_padded(channels);
    for (int64_t c = 0; c < channels; c++) {
        tr__batch_norm_scale(desc, launch, c, &mean[c], &scale[c]);
    }
    int threads = tr__threads_for(pixels * channels, NORM_WEIGHT, desc->target.workers);
    tr__parts_run(threads, norm_part, &(job){desc, launch});
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 5, out);
}

const tr_kernel TR_ISA_NAME(tr__batch_stat_kernel) = {
    .name = "batch_stat.cpu." TR_ISA_TEXT,
    .supports = tr__statistic_supports,
    .cost = cost,
    .workspace = stat_workspace,
    .launch = launch_stat,
};

const tr_kernel TR_ISA_NAME(tr__batch_norm_kernel) = {
    .name = "batch_norm.cpu." TR_ISA_TEXT,
    .supports = tr__statistic_supports,
    .cost = cost,
    .workspace = norm_workspace,
    .launch = launch_norm,
};
