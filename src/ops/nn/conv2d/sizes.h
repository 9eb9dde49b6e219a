// The sizes of a convolution, from the descriptor of any of its three ops.
#ifndef TR_OPS_NN_CONV2D_SIZES_H
#define TR_OPS_NN_CONV2D_SIZES_H

#include "ops/nn/conv2d/conv2d.h"
#include "ops/operand.h"

#include <string.h>

typedef struct tr_conv2d_sizes {
    int64_t batch, height, width, in; // x
    int64_t rows, columns, out;       // y
    int64_t p, q;                     // kernel
    int64_t groups;
    int64_t stride[2], padding[2], dilation[2]; // along the height, the width
} tr_conv2d_sizes;

static inline tr_conv2d_sizes tr__conv2d_sizes(const tr_op_desc *desc,
                                               const tr_tensor_desc *x,
                                               const tr_tensor_desc *weight,
                                               const tr_tensor_desc *y) {
    tr_conv2d_attr attr;
    memcpy(&attr, desc->attr, sizeof attr);
    const int64_t *xd = x->shape.dim, *wd = weight->shape.dim, *yd = y->shape.dim;
    return (tr_conv2d_sizes){.batch = xd[0],
                             .height = xd[1],
                             .width = xd[2],
                             .in = xd[3],
                             .rows = yd[1],
                             .columns = yd[2],
                             .out = yd[3],
                             .p = wd[2],
                             .q = wd[3],
                             .groups = attr.groups,
                             .stride = {attr.stride[0], attr.stride[1]},
                             .padding = {attr.padding[0], attr.padding[1]},
                             .dilation = {attr.dilation[0], attr.dilation[1]}};
}

static inline tr_conv2d_sizes tr__conv2d_output_sizes(const tr_op_desc *desc) {
    return tr__conv2d_sizes(desc, &desc->in[0], &desc->in[1], &desc->out[0]);
}

static inline tr_conv2d_sizes tr__conv2d_input_sizes(const tr_op_desc *desc) {
    return tr__conv2d_sizes(desc, &desc->out[0], &desc->in[1], &desc->in[0]);
}

static inline tr_conv2d_sizes tr__conv2d_weight_sizes(const tr_op_desc *desc) {
    return tr__conv2d_sizes(desc, &desc->in[1], &desc->in[2], &desc->in[0]);
}

static inline bool tr__conv2d_has_bias(const tr_op_desc *desc) {
    return desc->in_count > 2 && desc->in[2].dtype != TR_NONE;
}

// A multiplication and an addition for each weight and element of y, as if nothing lay
// outside of the image.
static inline void tr__conv2d_cost(const tr_op_desc *desc, tr_conv2d_sizes s,
                                   tr_cost *cost) {
    tr__desc_cost(desc, 0, cost);
    tr__cost_products(cost, s.batch * s.rows * s.columns, s.out,
                      s.in / s.groups * s.p * s.q, 1);
}

static inline void tr__conv2d_output_cost(const tr_op_desc *desc, tr_cost *cost) {
    tr__conv2d_cost(desc, tr__conv2d_output_sizes(desc), cost);
}

static inline void tr__conv2d_input_cost(const tr_op_desc *desc, tr_cost *cost) {
    tr__conv2d_cost(desc, tr__conv2d_input_sizes(desc), cost);
}

static inline void tr__conv2d_weight_cost(const tr_op_desc *desc, tr_cost *cost) {
    tr__conv2d_cost(desc, tr__conv2d_weight_sizes(desc), cost);
}

#endif
