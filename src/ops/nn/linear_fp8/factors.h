// The two factors of the product of an op of this folder: inputs 0 and 1.
#ifndef TR_OPS_NN_LINEAR_FP8_FACTORS_H
#define TR_OPS_NN_LINEAR_FP8_FACTORS_H

#include "base/fp8.h"
#include "ops/nn/largest/largest.h"
#include "ops/nn/linear/operands.h"
#include "ops/nn/linear_fp8/linear_fp8.h"

enum { TR_FP8_ALIGNMENT = 64 };

// What a factor is rounded to: gradients (dy, the backwards' input 0) to E5M2.
static inline tr_fp8 tr__fp8_factor_format(const tr_op_desc *desc, int factor) {
    bool gradient = desc->op != &tr__op_linear_fp8 && factor == 0;
    return gradient ? TR_FP8_E5M2 : TR_FP8_E4M3;
}

// Is it the weight, which has no rows of samples?
static inline bool tr__fp8_factor_is_weight(const tr_op_desc *desc, int factor) {
    return desc->op != &tr__op_linear_fp8_backward_weight && factor == 1;
}

// Factors that are rounded into the workspace. The weight is the last one: where the
// plan keeps what is made of it, it has its place there.
static inline int tr__fp8_factors_passing(const tr_op_desc *desc) {
    bool kept = desc->packs && tr__fp8_factor_is_weight(desc, TR_FP8_FACTORS - 1);
    return kept ? TR_FP8_FACTORS - 1 : TR_FP8_FACTORS;
}

// Elements of the factor, and those of the samples that are there, which are the first.
static inline int64_t tr__fp8_factor_count(const tr_op_desc *desc, int factor) {
    return tr_shape_count(desc->in[factor].shape);
}

static inline int64_t tr__fp8_factor_there(const tr_op_desc *desc, int factor,
                                           const tr_launch *launch) {
    int64_t count = tr__fp8_factor_count(desc, factor);
    int64_t samples = desc->in[factor].shape.dim[0];
    return tr__fp8_factor_is_weight(desc, factor)
               ? count
               : count / samples * tr__rows_there(launch, samples);
}

static inline tr_linear_fp8_attr tr__fp8_attr(const tr_op_desc *desc) {
    tr_linear_fp8_attr attr;
    memcpy(&attr, desc->attr, sizeof attr);
    return attr;
}

// The input with the largest value of the whole tensor of which the factor is this
// rank's part. Is there one, of these inputs [count]?
static inline int tr__fp8_factor_tells(const tr_op *op, int factor) {
    return tr__fp8_plain_inputs(op) + factor;
}
static inline bool tr__fp8_is_told(const tr_op *op, const tr_tensor_desc *in, int count,
                                   int factor) {
    int i = tr__fp8_factor_tells(op, factor);
    return i < count && in[i].dtype != TR_NONE;
}
static inline bool tr__fp8_factor_is_told(const tr_op_desc *desc, int factor) {
    return tr__fp8_is_told(desc->op, desc->in, desc->in_count, factor);
}

// Its bits, on the host.
static inline uint32_t tr__fp8_factor_told(const tr_op_desc *desc,
                                           const tr_launch *launch, int factor) {
    int i = tr__fp8_factor_tells(desc->op, factor);
    return tr__largest_told(launch->in[i], &desc->in[i],
                            tr__fp8_attr(desc).column[factor]);
}

// Inputs that tell such values, a bit for each.
static inline uint32_t tr__fp8_telling(const tr_op_desc *desc) {
    return 3u << tr__fp8_plain_inputs(desc->op);
}

// Where the rounded copy of a factor begins behind the one before it, in the factor's
// own type; of factor TR_FP8_FACTORS, the bytes of both.
static inline size_t tr__fp8_copy_at(const tr_op_desc *desc, int factor) {
    size_t at = 0;
    for (int i = 0; i < factor; i++) {
        size_t bytes = (size_t)tr_tensor_bytes(desc->in[i]);
        at += (bytes + TR_FP8_ALIGNMENT - 1) / TR_FP8_ALIGNMENT * TR_FP8_ALIGNMENT;
    }
    return at;
}

// The op that multiplies the same factors as they are.
static inline tr_op_desc tr__fp8_plain_desc(const tr_op_desc *desc) {
    tr_op_desc plain = *desc;
    int most = tr__fp8_plain_inputs(desc->op);
    plain.in_count = desc->in_count < most ? desc->in_count : most;
    plain.op = desc->op == &tr__op_linear_fp8 ? &tr__op_linear
               : desc->op == &tr__op_linear_fp8_backward_input
                   ? &tr__op_linear_backward_input
                   : &tr__op_linear_backward_weight;
    return plain;
}

#endif
