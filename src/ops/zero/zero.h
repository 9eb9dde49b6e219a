// out[0] = 0: of any type, [count] elements.
#ifndef TR_OPS_ZERO_H
#define TR_OPS_ZERO_H

#include <tranche/extend/op.h>

typedef struct tr_zero_attr {
    int64_t count;
    int32_t dtype; // tr_dtype
} tr_zero_attr;

extern const tr_op tr__op_zero;

#endif
