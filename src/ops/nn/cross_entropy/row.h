// What a row of logits has to do with its target, for all kernels.
#ifndef TR_OPS_NN_CROSS_ENTROPY_ROW_H
#define TR_OPS_NN_CROSS_ENTROPY_ROW_H

#include "ops/nn/cross_entropy/cross_entropy.h"
#include "ops/operand.h"

#include <stdbool.h>
#include <string.h>

// What is wanted of a row: `hit` at its target, and `all` times its weight at each
// class.
typedef struct tr_wanted {
    double hit, all;
    double count; // what the target counts as
} tr_wanted;

static inline tr_wanted tr__wanted(const tr_op_desc *desc, double weight) {
    tr_cross_entropy_attr attr;
    memcpy(&attr, desc->attr, sizeof attr);
    double classes = (double)tr__shape_width(desc->in[0].shape);
    double smoothing = (double)attr.smoothing;
    return (tr_wanted){(1 - smoothing) * weight, smoothing / classes, weight};
}

static inline bool tr__is_weighted(const tr_op_desc *desc) {
    return desc->in_count > 2 && desc->in[2].dtype != TR_NONE;
}

static inline bool tr__cross_entropy_supports(const tr_op_desc *desc, tr_dtype real) {
    return desc->in_count >= 2 && desc->in[0].dtype == real &&
           desc->in[1].dtype == TR_I32 &&
           (!tr__is_weighted(desc) || desc->in[2].dtype == real);
}

#endif
