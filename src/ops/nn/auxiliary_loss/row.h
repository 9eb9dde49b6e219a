// One row of logits, in double, for all kernels.
#ifndef TR_OPS_NN_AUXILIARY_LOSS_ROW_H
#define TR_OPS_NN_AUXILIARY_LOSS_ROW_H

#include "ops/nn/auxiliary_loss/auxiliary_loss.h"
#include "ops/operand.h"

#include <math.h>
#include <stdbool.h>

// A row's softmax is e^(x - top) / sum; it has a target where `there` is true.
typedef struct tr_auxiliary_row {
    bool there;
    int64_t target;
    double weight, top, sum;
} tr_auxiliary_row;

static inline bool tr__auxiliary_supports(const tr_op_desc *desc, tr_dtype real) {
    return desc->in_count == 3 && desc->in[0].dtype == real &&
           desc->in[1].dtype == TR_I32 && desc->in[2].dtype == TR_F32;
}

// What row r has beside its logits.
static inline tr_auxiliary_row tr__auxiliary_begin(const tr_launch *launch, int64_t r) {
    const int32_t *targets = launch->in[1]; // [rows]
    const float *weights = launch->in[2];   // [rows]
    return (tr_auxiliary_row){.there = targets[r] != TR_NO_TARGET,
                              .target = targets[r],
                              .weight = weights[r],
                              .top = -(double)INFINITY};
}

// at: the logit of the row's target.
static inline void tr__auxiliary_add(const tr_auxiliary_row *row, double at,
                                     double *sums) {
    if (row->there) {
        sums[TR_SUM_LOSS] += row->weight * (row->top + log(row->sum) - at);
    }
}

// What logit x of class c changes the loss by, times the seed.
static inline double tr__auxiliary_slope(const tr_auxiliary_row *row, double x,
                                         int64_t c, double seed) {
    double hit = c == row->target ? 1 : 0;
    return row->there ? seed * row->weight * (exp(x - row->top) / row->sum - hit) : 0;
}

#endif
