// The ops of the library, which cmake/ops.cmake lists.
#ifndef TR_OPS_BUILT_IN_H
#define TR_OPS_BUILT_IN_H

#include <tranche/extend/op.h>

// Every tr__op_<name> of src/ops; NULL at the end.
extern const tr_op *const tr__built_in_ops[];

static inline bool tr__op_is_built_in(const tr_op *op) {
    const tr_op *const *at = tr__built_in_ops;
    while (*at && *at != op) {
        at++;
    }
    return *at != NULL;
}

#endif
