// The sizes of a pooling, from its descriptor.
#ifndef TR_OPS_NN_POOL_SIZES_H
#define TR_OPS_NN_POOL_SIZES_H

#include "ops/nn/pool/pool.h"
#include "ops/nn/pool/windows.h"
#include "ops/operand.h"

#include <string.h>

// Windows along a side; 0: none fit.
static inline int64_t tr__pool_windows(const tr_pool_attr *attr, int64_t side) {
    int64_t room = side + 2 * (int64_t)attr->padding - attr->kernel;
    return attr->kernel == 0 ? 1 : room < 0 ? 0 : room / attr->stride + 1;
}

static inline tr_pool_sizes tr__pool_sizes(const tr_op_desc *desc, tr_shape x) {
    tr_pool_attr attr;
    memcpy(&attr, desc->attr, sizeof attr);
    bool all = attr.kernel == 0;
    return (tr_pool_sizes){x.dim[0],
                           x.dim[1],
                           x.dim[2],
                           x.dim[3],
                           tr__pool_windows(&attr, x.dim[1]),
                           tr__pool_windows(&attr, x.dim[2]),
                           all ? x.dim[1] : attr.kernel,
                           all ? x.dim[2] : attr.kernel,
                           all ? 1 : attr.stride,
                           all ? 0 : attr.padding,
                           attr.kind == TR_POOL_MAX};
}

#endif
