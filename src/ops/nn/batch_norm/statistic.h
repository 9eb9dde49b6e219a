// Statistics of channels: [3, C], and how two are merged; for the host and for devices.
#ifndef TR_OPS_NN_BATCH_NORM_STATISTIC_H
#define TR_OPS_NN_BATCH_NORM_STATISTIC_H

#include "base/device.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

enum { TR_STAT_COUNT, TR_STAT_MEAN, TR_STAT_SQUARES, TR_STAT_ROWS };

// Of one channel.
typedef struct tr_statistic {
    double count, mean, squares;
} tr_statistic;

TR_DEVICE static inline tr_statistic tr__statistic_at(const double *stat,
                                                      int64_t channels, int64_t c) {
    tr_statistic s = {stat[c], stat[channels + c], stat[2 * channels + c]};
    return s;
}

TR_DEVICE static inline void tr__statistic_put(double *stat, int64_t channels,
                                               int64_t c, tr_statistic s) {
    stat[c] = s.count;
    stat[channels + c] = s.mean;
    stat[2 * channels + c] = s.squares;
}

// Nothing merged with `b` is `b`, and `a` merged with nothing is `a`, bit for bit. All
// processors and GPUs make the same bits.
TR_DEVICE static inline tr_statistic tr__statistic_merge(tr_statistic a,
                                                         tr_statistic b) {
    double count = a.count + b.count, apart = b.mean - a.mean;
    if (a.count == 0 || b.count == 0) {
        return a.count == 0 ? b : a;
    }
    tr_statistic both = {count, a.mean + tr__product(apart, b.count / count),
                         a.squares + b.squares +
                             tr__product(apart * apart, a.count * b.count / count)};
    return both;
}

// Writes the channel, or merges it with what is there.
TR_DEVICE static inline void tr__statistic_give(double *stat, int64_t channels,
                                                int64_t c, tr_statistic s, bool add) {
    if (add) {
        s = tr__statistic_merge(tr__statistic_at(stat, channels, c), s);
    }
    tr__statistic_put(stat, channels, c, s);
}

TR_DEVICE static inline double tr__statistic_rstd(tr_statistic s, float epsilon) {
    double variance = s.count > 0 ? s.squares / s.count : 0;
    return 1 / sqrt(variance + (double)epsilon);
}

// Gradients of a channel's statistic from the sums over a part of the batch of dy and
// of dy * (x - mean) * rstd: y depends on the mean, and by the variance squares / count
// on both of these.
TR_DEVICE static inline tr_statistic tr__statistic_gradient(tr_statistic s, double rstd,
                                                            double weight, double dy,
                                                            double dy_xhat) {
    double dvariance = -0.5 * weight * rstd * rstd * dy_xhat;
    double count = s.count > 0 ? s.count : 1;
    tr_statistic gradient = {-dvariance * s.squares / (count * count),
                             -weight * rstd * dy, dvariance / count};
    return gradient;
}

TR_DEVICE static inline void tr__statistic_add(double *stat, int64_t channels,
                                               int64_t c, tr_statistic s, bool add) {
    tr_statistic is = {0, 0, 0};
    if (add) {
        is = tr__statistic_at(stat, channels, c);
    }
    tr_statistic sum = {is.count + s.count, is.mean + s.mean, is.squares + s.squares};
    tr__statistic_put(stat, channels, c, sum);
}

// dx = a + b * (x - mean), of the statistic's gradient.
TR_DEVICE static inline void tr__statistic_slope(tr_statistic s, tr_statistic gradient,
                                                 double *a, double *b) {
    *a = s.count > 0 ? gradient.mean / s.count : 0;
    *b = 2 * gradient.squares;
}

#endif
