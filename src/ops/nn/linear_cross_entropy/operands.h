// What the kernels of the head's ops read from their descriptors.
#ifndef TR_OPS_NN_LINEAR_CROSS_ENTROPY_OPERANDS_H
#define TR_OPS_NN_LINEAR_CROSS_ENTROPY_OPERANDS_H

#include "base/checked.h"
#include "ops/nn/linear/dims.h"
#include "ops/nn/linear_cross_entropy/linear_cross_entropy.h"
#include "ops/operand.h"

#include <string.h>

// The first inputs of all ops here and of slices of the head, the first results of the
// backwards.
enum { HEAD_X, HEAD_WEIGHT, HEAD_BIAS, HEAD_TARGETS, HEAD_INPUTS };
enum { HEAD_DX, HEAD_DWEIGHT, HEAD_DBIAS, HEAD_SUMS };
// Of a slice: the logits, which its forward may keep (the result HEAD_KEPT) and give to
// its backward (the input HEAD_GIVEN).
enum { HEAD_KEPT = 2, HEAD_GIVEN = HEAD_INPUTS + 3 };

// Attributes of slices begin with these.
static inline tr_lce_attr tr__lce_attr(const tr_op_desc *desc) {
    tr_lce_attr attr;
    memcpy(&attr, desc->attr, sizeof attr);
    return attr;
}

// rows: all; in: C; out: V
static inline tr_linear_dims tr__lce_dims(const tr_op_desc *desc) {
    tr_weight_layout layout = tr__lce_attr(desc).layout;
    return (tr_linear_dims){
        .rows = tr__shape_rows(desc->in[HEAD_X].shape),
        .in = tr__shape_width(desc->in[HEAD_X].shape),
        .out = desc->in[HEAD_WEIGHT].shape.dim[layout == TR_WEIGHT_IN_OUT ? 1 : 0],
        .layout = layout,
    };
}

static inline bool tr__lce_has_bias(const tr_op_desc *desc) {
    return desc->in[HEAD_BIAS].dtype != TR_NONE;
}

static inline bool tr__lce_wants(const tr_op_desc *desc, int result) {
    return desc->out_count > result && desc->out[result].dtype != TR_NONE;
}

// Elements from one row of logits that are kept to the next, for V classes: GPUs want
// products whose rows are aligned.
static inline int64_t tr__lce_logits_row(int64_t classes) {
    return tr__round_up(classes, 64);
}

static inline bool tr__lce_keeps_logits(const tr_op_desc *desc) {
    bool slice = desc->in_count == HEAD_INPUTS + 2; // a backward has more inputs
    return slice && tr__lce_wants(desc, HEAD_KEPT);
}

static inline bool tr__lce_is_given_logits(const tr_op_desc *desc) {
    return desc->in_count > HEAD_GIVEN && desc->in[HEAD_GIVEN].dtype != TR_NONE;
}

// Have the inputs above and the results the types that kernels expect of real ones that
// are `real`? Only dx, which is first where it is that type, is one of the results.
static inline bool tr__lce_operands_fit(const tr_op_desc *desc, tr_dtype real) {
    for (int i = 0; i < desc->out_count; i++) {
        tr_dtype dtype = desc->out[i].dtype;
        if (dtype != TR_NONE && dtype != TR_F32 && dtype != TR_F64 &&
            !(i == HEAD_DX && dtype == real)) {
            return false;
        }
    }
    return desc->in_count >= HEAD_INPUTS && desc->in[HEAD_X].dtype == real &&
           desc->in[HEAD_WEIGHT].dtype == real &&
           (desc->in[HEAD_BIAS].dtype == real || !tr__lce_has_bias(desc)) &&
           desc->in[HEAD_TARGETS].dtype == TR_I32;
}

static inline bool tr__lce_supports(const tr_op_desc *desc, tr_dtype real) {
    return desc->in_count == HEAD_INPUTS && tr__lce_operands_fit(desc, real);
}

// A shape rule: checks the inputs above and gives V.
tr_status tr__lce_check_inputs(const tr_op_node *node, int64_t *vocabulary,
                               tr_error *err);

// Each operand moved once, and `products` products of the head's size; the softmax,
// some ten operations for each logit, counts too.
static inline void tr__lce_cost(const tr_op_desc *desc, int64_t rows, int products,
                                tr_cost *cost) {
    tr_linear_dims d = tr__lce_dims(desc);
    tr__desc_cost(desc, 0, cost);
    tr__cost_products(cost, rows, d.out, d.in, products);
    cost->flops += 10 * cost->rows * cost->columns;
}

static inline void tr__lce_forward_cost(const tr_op_desc *desc, tr_cost *cost) {
    tr__lce_cost(desc, tr__lce_dims(desc).rows, 1, cost);
}

static inline int tr__lce_backward_products(const tr_op_desc *desc) {
    return !tr__lce_is_given_logits(desc) + tr__lce_wants(desc, HEAD_DX) +
           tr__lce_wants(desc, HEAD_DWEIGHT);
}

// A slice's backward has had a forward, and makes the logits again if it is not given
// them; the whole head's has not, and is both.
static inline void tr__lce_rows_backward_cost(const tr_op_desc *desc, int64_t rows,
                                              tr_cost *cost) {
    bool again = desc->in_count > HEAD_INPUTS && !tr__lce_is_given_logits(desc);
    tr__lce_cost(desc, rows, tr__lce_backward_products(desc), cost);
    cost->model -= again ? 2 * cost->rows * cost->columns * cost->depth : 0;
}

static inline void tr__lce_backward_cost(const tr_op_desc *desc, tr_cost *cost) {
    tr__lce_rows_backward_cost(desc, tr__lce_dims(desc).rows, cost);
}

// One row for each sample; no softmax, but that is little beside it.
static inline void tr__lce_logits_cost(const tr_op_desc *desc, tr_cost *cost) {
    tr__lce_cost(desc, desc->in[HEAD_X].shape.dim[0], 1, cost);
}

// The last of `rows` targets that is one, or -1.
static inline int64_t tr__lce_last_target(const int32_t *targets, int64_t rows) {
    int64_t r = rows - 1;
    while (r >= 0 && targets[r] < 0) {
        r--;
    }
    return r;
}

#endif
