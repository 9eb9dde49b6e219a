// What the kernels of joined softmaxes read.
#ifndef TR_OPS_NN_SOFTMAX_PARTS_OPERANDS_H
#define TR_OPS_NN_SOFTMAX_PARTS_OPERANDS_H

#include "ops/nn/softmax_parts/parts.h"
#include "ops/nn/softmax_parts/softmax_parts.h"
#include "ops/operand.h"

#include <string.h>

enum { JOIN_PARTS, JOIN_RUNNING, JOIN_DRUNNING, JOIN_BACKWARD_INPUTS };

typedef struct tr_softmax_parts_sizes {
    int64_t rows, ranks, rank;
} tr_softmax_parts_sizes;

static inline tr_softmax_parts_sizes tr__softmax_part_sizes(const tr_op_desc *desc) {
    tr_softmax_part_attr attr;
    memcpy(&attr, desc->attr, sizeof attr);
    tr_shape lead = tr__shape_lead(desc->in[0].shape);
    return (tr_softmax_parts_sizes){tr_shape_count(lead), attr.ranks, attr.rank};
}

static inline tr_softmax_parts_sizes tr__softmax_join_sizes(const tr_op_desc *desc) {
    tr_shape shape = desc->in[JOIN_PARTS].shape;
    return (tr_softmax_parts_sizes){.rows = tr_shape_count(tr__shape_lead(shape)),
                                    .ranks = tr__shape_width(shape) / PART};
}

#endif
