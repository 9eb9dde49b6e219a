// Notes where the first value that is not finite has been made.
//
//     in[0]   f16 or f32 [...]
//     out[0]  f64 [1]   always added to: where an element of in[0] is infinite or not a
//                       number, and out[0] is 0 or larger than the place of the result
//                       in the step, it becomes that place
//
// fp16's range is small. Who lowers the loss scale, or looks for a mistake, must know
// where a value did not fit.
#ifndef TR_OPS_FLAT_NONFINITE_NONFINITE_H
#define TR_OPS_FLAT_NONFINITE_NONFINITE_H

#include <tranche/extend/op.h>

typedef struct tr_nonfinite_attr {
    double place; // in the launch; the smaller, the earlier
} tr_nonfinite_attr;

// In the step: > 0.
static inline double tr__nonfinite_place(const tr_op_desc *desc,
                                         const tr_launch *launch) {
    const tr_nonfinite_attr *attr = (const void *)desc->attr;
    return attr->place + (launch->run ? launch->run->place : 0);
}

extern const tr_op tr__op_nonfinite;

#endif
