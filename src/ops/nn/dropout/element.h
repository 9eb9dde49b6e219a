// Dropout of one element, for reference kernels.
#ifndef TR_OPS_NN_DROPOUT_ELEMENT_H
#define TR_OPS_NN_DROPOUT_ELEMENT_H

#include "ops/nn/dropout/draw.h"
#include "ops/nn/dropout/dropout.h"

// What element `i` of x of that shape [B, ...] is multiplied with: 0, or the
// inverse of the probability to keep it.
static inline float tr__dropout_element(const tr_dropout_attr *attr,
                                        const tr_run_context *run, tr_shape shape,
                                        int64_t i) {
    if (attr->probability == 0) {
        return 1;
    }
    tr_dropout_place x = tr__dropout_place(attr, shape);
    int64_t at = x.first + i;
    tr_draw draw =
        tr__draw_open(run, at / x.per_sample, attr->draw_id, attr->probability);
    return tr__draw_multiplier(&draw, (uint64_t)(at % x.per_sample));
}

#endif
