// What the kernels of batch norm read from their descriptors.
#ifndef TR_OPS_NN_BATCH_NORM_OPERANDS_H
#define TR_OPS_NN_BATCH_NORM_OPERANDS_H

#include "ops/nn/batch_norm/batch_norm.h"
#include "ops/nn/batch_norm/statistic.h"
#include "ops/operand.h"

#include <string.h>

// Is every operand that is there of type `real`, f32, or a statistic?
static inline bool tr__statistic_supports_real(const tr_op_desc *desc, tr_dtype real) {
    for (int i = 0; i < desc->in_count + desc->out_count; i++) {
        tr_dtype dtype = i < desc->in_count ? desc->in[i].dtype
                                            : desc->out[i - desc->in_count].dtype;
        if (dtype != TR_NONE && dtype != TR_F32 && dtype != TR_F64 && dtype != real) {
            return false;
        }
    }
    return true;
}

static inline bool tr__statistic_supports(const tr_op_desc *desc) {
    return tr__statistic_supports_real(desc, TR_F32);
}

static inline tr_batch_norm_attr tr__batch_norm_attr(const tr_op_desc *desc) {
    tr_batch_norm_attr attr;
    memcpy(&attr, desc->attr, sizeof attr);
    return attr;
}

// Elements of a channel that one row of the batch has.
static inline int64_t tr__channel_elements(tr_shape shape) {
    int64_t count = 1;
    for (int i = 1; i + 1 < shape.rank; i++) {
        count *= shape.dim[i];
    }
    return count;
}

// Pixels of the rows that are there.
static inline int64_t tr__pixels_there(const tr_launch *launch, tr_shape shape) {
    return tr__rows_there(launch, shape.dim[0]) * tr__channel_elements(shape);
}

static inline int64_t tr__pixels(tr_shape shape) {
    return shape.dim[0] * tr__channel_elements(shape);
}

// What each channel is normalized by: y = (x - mean) * scale + bias.
static inline void tr__batch_norm_scale(const tr_op_desc *desc, const tr_launch *launch,
                                        int64_t c, float *mean, float *scale) {
    tr_batch_norm_attr attr = tr__batch_norm_attr(desc);
    int64_t channels = tr__shape_width(desc->in[0].shape);
    const float *weight = launch->in[2];
    if (attr.running) {
        const float *running = launch->in[5], *variance = launch->in[6];
        *mean = running[c];
        *scale = (float)(weight[c] / sqrt((double)variance[c] + (double)attr.epsilon));
        return;
    }
    tr_statistic s = tr__statistic_at(launch->in[1], channels, c);
    *mean = (float)s.mean;
    *scale = (float)(weight[c] * tr__statistic_rstd(s, attr.epsilon));
}

#endif
