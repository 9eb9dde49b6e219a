// What the kernels of a slice of the head read from their descriptors.
#ifndef TR_OPS_NN_LINEAR_CROSS_ENTROPY_SLICE_OPERANDS_H
#define TR_OPS_NN_LINEAR_CROSS_ENTROPY_SLICE_OPERANDS_H

#include "ops/nn/linear_cross_entropy/operands.h"
#include "ops/nn/linear_cross_entropy_slice/linear_cross_entropy_slice.h"
#include "ops/nn/linear_cross_entropy_slice/running.h"

// Inputs after those of the head.
enum { SLICE_BEFORE = HEAD_INPUTS, SLICE_BEST, SLICE_INPUTS };
enum {
    SLICE_AFTER = SLICE_BEFORE + 1,
    SLICE_DAFTER,
    SLICE_GIVEN = HEAD_GIVEN, // the logits, if they were kept
    SLICE_BACKWARD_INPUTS
};
// Results: of the forward, and of the backward after those of the head.
enum { SLICE_RUNNING, SLICE_BEST_NOW, SLICE_LOGITS = HEAD_KEPT, SLICE_RESULTS };
enum { SLICE_DBEFORE = HEAD_DBIAS + 1, SLICE_BACKWARD_RESULTS };

enum { LOSS_RUNNING, LOSS_BEST, LOSS_TARGETS, LOSS_INPUTS };
enum { LOSS_DRUNNING, LOSS_SUMS };

// The slice's logit of a class, -1: it is another slice's, or none.
static inline int64_t tr__lce_slice_place(const tr_op_desc *desc, int32_t target) {
    tr_lce_slice_attr attr;
    memcpy(&attr, desc->attr, sizeof attr);
    int64_t place = target - attr.first;
    return target >= 0 && place >= 0 && place < tr__lce_dims(desc).out ? place : -1;
}

static inline bool tr__lce_slice_supports(const tr_op_desc *desc, tr_dtype real) {
    return desc->in_count == SLICE_INPUTS && tr__lce_operands_fit(desc, real);
}

static inline bool tr__lce_slice_backward_supports(const tr_op_desc *desc,
                                                   tr_dtype real) {
    return desc->in_count >= SLICE_GIVEN && tr__lce_operands_fit(desc, real);
}

#endif
