// How often which elements are repeated, from the descriptor of any of the four ops.
#ifndef TR_OPS_NN_BROADCAST_SIZES_H
#define TR_OPS_NN_BROADCAST_SIZES_H

#include "ops/nn/broadcast/broadcast.h"
#include "ops/operand.h"

#include <string.h>

typedef struct tr_broadcast_sizes {
    int64_t outer, times, inner; // the larger tensor is [outer, times, inner]
    float scale;
} tr_broadcast_sizes;

// sums: input 0 is the larger tensor, else output 0.
static inline tr_broadcast_sizes tr__broadcast_sizes(const tr_op_desc *desc,
                                                     bool sums) {
    tr_broadcast_attr attr;
    memcpy(&attr, desc->attr, sizeof attr);
    tr_shape shape = sums ? desc->in[0].shape : desc->out[0].shape;
    bool whole = shape.rank == 3; // a parameter, for all samples
    int64_t inner = tr__shape_width(shape);
    int64_t times = whole ? tr__shape_rows(shape) : attr.times;
    return (tr_broadcast_sizes){tr_shape_count(shape) / (times * inner), times, inner,
                                whole ? 1 : attr.scale};
}

static inline void tr__broadcast_cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 1, out);
}

#endif
