// One element of the losses, in double.
#ifndef TR_OPS_NN_ELEMENT_LOSS_ELEMENT_H
#define TR_OPS_NN_ELEMENT_LOSS_ELEMENT_H

#include "base/device.h"
#include "ops/nn/element_loss/element_loss.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

static inline tr_element_loss_kind tr__element_kind(const tr_op_desc *desc) {
    tr_element_loss_attr attr;
    memcpy(&attr, desc->attr, sizeof attr);
    return (tr_element_loss_kind)attr.kind;
}

// Are x of type `real`, and the targets numbers?
static inline bool tr__element_supports(const tr_op_desc *desc, tr_dtype real) {
    return desc->in_count == 2 && desc->in[0].dtype == real &&
           desc->in[1].dtype == TR_F32;
}

// The cross-entropy of a logit and a share: -t log p - (1 - t) log(1 - p), p = 1 / (1 +
// e^-x), in a form in which nothing overflows.
TR_DEVICE static inline double tr__element_loss(tr_element_loss_kind kind, double x,
                                                double t) {
    if (kind == TR_ELEMENTS_SQUARE) {
        return (x - t) * (x - t);
    }
    return (x < 0 ? 0 : x) - x * t + log1p(exp(-fabs(x)));
}

TR_DEVICE static inline double tr__element_slope(tr_element_loss_kind kind, double x,
                                                 double t) {
    if (kind == TR_ELEMENTS_SQUARE) {
        return 2 * (x - t);
    }
    double e = exp(-fabs(x));
    return (x < 0 ? e : 1) / (1 + e) - t;
}

TR_DEVICE static inline bool tr__element_is_right(tr_element_loss_kind kind, double x,
                                                  double t) {
    return kind == TR_ELEMENTS_BINARY && (x > 0) == (t > 0.5);
}

// Adds an element to the sums.
TR_DEVICE static inline void tr__element_add(tr_element_loss_kind kind, double x,
                                             double t, double *sums) {
    if (!isnan(t)) {
        sums[TR_SUM_LOSS] += tr__element_loss(kind, x, t);
        sums[TR_SUM_COUNT] += 1;
        sums[TR_SUM_CORRECT] += tr__element_is_right(kind, x, t);
    }
}

#endif
