// What the kernels of the three linear ops read from their descriptors.
#ifndef TR_OPS_NN_LINEAR_OPERANDS_H
#define TR_OPS_NN_LINEAR_OPERANDS_H

#include "ops/nn/linear/dims.h"
#include "ops/operand.h"

#include <string.h>

static inline tr_linear_attr tr__linear_attr(const tr_op_desc *desc) {
    tr_linear_attr attr;
    memcpy(&attr, desc->attr, sizeof attr);
    return attr;
}

// x: [..., in], y: [..., out]
static inline tr_linear_dims tr__linear_dims(const tr_op_desc *desc, tr_tensor_desc x,
                                             tr_tensor_desc y) {
    return (tr_linear_dims){
        .rows = tr__shape_rows(x.shape),
        .in = tr__shape_width(x.shape),
        .out = tr__shape_width(y.shape),
        .layout = tr__linear_attr(desc).layout,
    };
}

static inline tr_linear_dims tr__linear_output_dims(const tr_op_desc *desc) {
    return tr__linear_dims(desc, desc->in[0], desc->out[0]);
}

static inline tr_linear_dims tr__linear_input_dims(const tr_op_desc *desc) {
    return tr__linear_dims(desc, desc->out[0], desc->in[0]);
}

static inline tr_linear_dims tr__linear_weight_dims(const tr_op_desc *desc) {
    return tr__linear_dims(desc, desc->in[1], desc->in[0]);
}

// Each operand moved once; a multiplication and an addition for each weight and row.
static inline void tr__linear_output_cost(const tr_op_desc *desc, tr_cost *cost) {
    tr_linear_dims d = tr__linear_output_dims(desc);
    tr__desc_cost(desc, 0, cost);
    tr__cost_products(cost, d.rows, d.out, d.in, 1);
}

static inline void tr__linear_input_cost(const tr_op_desc *desc, tr_cost *cost) {
    tr_linear_dims d = tr__linear_input_dims(desc);
    tr__desc_cost(desc, 0, cost);
    tr__cost_products(cost, d.rows, d.in, d.out, 1);
}

static inline void tr__linear_weight_cost(const tr_op_desc *desc, tr_cost *cost) {
    tr_linear_dims d = tr__linear_weight_dims(desc);
    tr__desc_cost(desc, 0, cost);
    tr__cost_products(cost, d.in, d.out, d.rows, 1);
}

// A row is read once and added.
static inline void tr__linear_bias_cost(const tr_op_desc *desc, tr_cost *cost) {
    tr_linear_dims dims = tr__linear_weight_dims(desc);
    tr__desc_cost(desc, 0, cost);
    cost->flops = (double)dims.rows * (double)dims.out;
}

static inline bool tr__linear_has_bias(const tr_op_desc *desc) {
    return desc->in_count > 2 && desc->in[2].dtype != TR_NONE;
}

#endif
