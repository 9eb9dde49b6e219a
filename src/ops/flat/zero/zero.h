// out[0] = 0: of any type, [count] elements.
#ifndef TR_OPS_FLAT_ZERO_ZERO_H
#define TR_OPS_FLAT_ZERO_ZERO_H

#include <tranche/extend/op.h>

// Without padding, as descriptions of launches are told apart byte by byte.
typedef struct tr_zero_attr {
    int64_t count;
    int64_t dtype; // tr_dtype
} tr_zero_attr;

extern const tr_op tr__op_zero;

#endif
