// Statistics of channels: [3, C], and how two are merged.
#ifndef TR_OPS_BATCH_NORM_STATISTIC_H
#define TR_OPS_BATCH_NORM_STATISTIC_H

#include "ops/batch_norm/batch_norm.h"
#include "ops/operand.h"

#include <math.h>
#include <string.h>

enum { TR_STAT_COUNT, TR_STAT_MEAN, TR_STAT_SQUARES, TR_STAT_ROWS };

// Of one channel.
typedef struct tr_statistic {
    double count, mean, squares;
} tr_statistic;

static inline tr_statistic tr__statistic_at(const double *stat, int64_t channels,
                                            int64_t c) {
    return (tr_statistic){stat[c], stat[channels + c], stat[2 * channels + c]};
}

static inline void tr__statistic_put(double *stat, int64_t channels, int64_t c,
                                     tr_statistic s) {
    stat[c] = s.count;
    stat[channels + c] = s.mean;
    stat[2 * channels + c] = s.squares;
}

// Nothing merged with `b` is `b`, and `a` merged with nothing is `a`, bit for bit.
static inline tr_statistic tr__statistic_merge(tr_statistic a, tr_statistic b) {
    double count = a.count + b.count, apart = b.mean - a.mean;
    if (a.count == 0 || b.count == 0) {
        return a.count == 0 ? b : a;
    }
    return (tr_statistic){count, a.mean + apart * (b.count / count),
                          a.squares + b.squares +
                              apart * apart * (a.count * b.count / count)};
}

// Writes the channel, or merges it with what is there.
static inline void tr__statistic_give(double *stat, int64_t channels, int64_t c,
                                      tr_statistic s, bool add) {
    if (add) {
        s = tr__statistic_merge(tr__statistic_at(stat, channels, c), s);
    }
    tr__statistic_put(stat, channels, c, s);
}

static inline double tr__statistic_rstd(tr_statistic s, float epsilon) {
    double variance = s.count > 0 ? s.squares / s.count : 0;
    return 1 / sqrt(variance + (double)epsilon);
}

// Gradients of a channel's statistic from the sums over a part of the batch of dy and
// of dy * (x - mean) * rstd: y depends on the mean, and by the variance squares / count
// on both of these.
static inline tr_statistic tr__statistic_gradient(tr_statistic s, double rstd,
                                                  double weight, double dy,
                                                  double dy_xhat) {
    double dvariance = -0.5 * weight * rstd * rstd * dy_xhat;
    double count = s.count > 0 ? s.count : 1;
    return (tr_statistic){-dvariance * s.squares / (count * count), -weight * rstd * dy,
                          dvariance / count};
}

static inline void tr__statistic_add(double *stat, int64_t channels, int64_t c,
                                     tr_statistic s, bool add) {
    tr_statistic is = {0, 0, 0};
    if (add) {
        is = tr__statistic_at(stat, channels, c);
    }
    tr__statistic_put(
        stat, channels, c,
        (tr_statistic){is.count + s.count, is.mean + s.mean, is.squares + s.squares});
}

// dx = a + b * (x - mean), of the statistic's gradient.
static inline void tr__statistic_slope(tr_statistic s, tr_statistic gradient, double *a,
                                       double *b) {
    *a = s.count > 0 ? gradient.mean / s.count : 0;
    *b = 2 * gradient.squares;
}

// ---- operands

// Is every operand that is there f32, or a statistic?
static inline bool tr__statistic_supports(const tr_op_desc *desc) {
    for (int i = 0; i < desc->in_count + desc->out_count; i++) {
        tr_dtype dtype = i < desc->in_count ? desc->in[i].dtype
                                            : desc->out[i - desc->in_count].dtype;
        if (dtype != TR_NONE && dtype != TR_F32 && dtype != TR_F64) {
            return false;
        }
    }
    return true;
}

static inline tr_batch_norm_attr tr__batch_norm_attr(const tr_op_desc *desc) {
    tr_batch_norm_attr attr;
    memcpy(&attr, desc->attr, sizeof attr);
    return attr;
}

// Elements of a channel that one row of the batch has.
static inline int64_t tr__channel_elements(tr_shape shape) {
    int64_t count = 1;
    for (int i = 1; i + 1 < shape.rank; i++) {
        count *= shape.dim[i];
    }
    return count;
}

// Pixels of the rows that are there.
static inline int64_t tr__pixels_there(const tr_launch *launch, tr_shape shape) {
    return tr__rows_there(launch, shape.dim[0]) * tr__channel_elements(shape);
}

static inline int64_t tr__pixels(tr_shape shape) {
    return shape.dim[0] * tr__channel_elements(shape);
}

// What each channel is normalized by: y = (x - mean) * scale + bias.
static inline void tr__batch_norm_scale(const tr_op_desc *desc, const tr_launch *launch,
                                        int64_t c, float *mean, float *scale) {
    tr_batch_norm_attr attr = tr__batch_norm_attr(desc);
    int64_t channels = tr__shape_width(desc->in[0].shape);
    const float *weight = launch->in[2];
    if (attr.running) {
        const float *running = launch->in[5], *variance = launch->in[6];
        *mean = running[c];
        *scale = (float)(weight[c] / sqrt((double)variance[c] + (double)attr.epsilon));
        return;
    }
    tr_statistic s = tr__statistic_at(launch->in[1], channels, c);
    *mean = (float)s.mean;
    *scale = (float)(weight[c] * tr__statistic_rstd(s, attr.epsilon));
}

#endif
