// The same elements in another shape. Samples stay apart.
#ifndef TR_OPS_NN_RESHAPE_RESHAPE_H
#define TR_OPS_NN_RESHAPE_RESHAPE_H

#include <tranche/extend/op.h>

typedef struct tr_reshape_attr {
    int64_t dim[TR_RANK_MAX - 1]; // of a sample; 0 after the last
} tr_reshape_attr;

// in: x [B, ...]   out: y [B, dim...], of as many elements
extern const tr_op tr__op_reshape;

#endif
