// The parts of a row on all ranks, and how they are joined, for kernels of the host and
// of GPUs.
#ifndef TR_OPS_NN_SOFTMAX_PARTS_PARTS_H
#define TR_OPS_NN_SOFTMAX_PARTS_PARTS_H

#include "base/device.h"
#include "ops/nn/linear_cross_entropy_slice/running.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

// Elements of a rank's place in a row of parts.
enum { PART_LSE, PART_LSE_REST, PART_PICKED, PART_LOGIT, PART_IS_TARGET, PART };

TR_DEVICE static inline void tr__parts_put(float *to, double value, bool add) {
    *to = (add ? *to : 0) + (float)value;
}

TR_DEVICE static inline void tr__parts_put_double(double *to, double value, bool add) {
    *to = (add ? *to : 0) + value;
}

// What f32 does not keep of a number; of one that is not finite nothing.
TR_DEVICE static inline double tr__parts_rest(double value) {
    float kept = (float)value;
    return fabsf(kept) < INFINITY ? value - kept : 0;
}

TR_DEVICE static inline double tr__parts_lse(const float *part) {
    return (double)part[PART_LSE] + part[PART_LSE_REST];
}

// parts: [ranks, PART]; running: [RUNNING]
TR_DEVICE static inline void tr__parts_join_running(const float *parts, int64_t ranks,
                                                    double *running, bool add) {
    double most = -INFINITY, sum = 0, picked = 0;
    for (int64_t k = 0; k < ranks; k++) {
        most = fmax(most, tr__parts_lse(parts + k * PART));
        picked += parts[k * PART + PART_PICKED];
    }
    double shift = most > -INFINITY ? most : 0; // else no power would be a number
    for (int64_t k = 0; k < ranks; k++) {
        sum += exp(tr__parts_lse(parts + k * PART) - shift); // NaN stays
    }
    tr__parts_put_double(&running[RUNNING_LSE], shift + log(sum), add);
    tr__parts_put_double(&running[RUNNING_PICKED], picked, add);
}

// NaN is never the best, but for that of the first rank, as in one row of all classes.
// best: [BEST]
TR_DEVICE static inline void tr__parts_join_best(const float *parts, int64_t ranks,
                                                 float *best, bool add) {
    const float *first = parts;
    for (int64_t k = 1; k < ranks; k++) {
        const float *part = parts + k * PART;
        first = part[PART_LOGIT] > first[PART_LOGIT] ? part : first;
    }
    tr__parts_put(&best[BEST_LOGIT], first[PART_LOGIT], add);
    tr__parts_put(&best[BEST_IS_TARGET], first[PART_IS_TARGET], add);
}

#endif
