// The rows whose logits are asked for: of each sample the one of its last target.
#ifndef TR_OPS_NN_LINEAR_CROSS_ENTROPY_CPU_GATHERED_H
#define TR_OPS_NN_LINEAR_CROSS_ENTROPY_CPU_GATHERED_H

#include "base/checked.h"
#include "ops/nn/linear_cross_entropy/operands.h"

static inline tr_linear_dims tr__gathered_dims(const tr_op_desc *desc) {
    tr_linear_dims dims = tr__lce_dims(desc);
    dims.rows = desc->in[HEAD_X].shape.dim[0];
    return dims;
}

static inline int64_t tr__gathered_row_bytes(const tr_op_desc *desc) {
    return tr__lce_dims(desc).in * (int64_t)tr_dtype_bytes(desc->in[HEAD_X].dtype);
}

static inline size_t tr__gathered_bytes(const tr_op_desc *desc) {
    int64_t rows = tr__gathered_dims(desc).rows;
    return (size_t)tr__round_up(rows * tr__gathered_row_bytes(desc), 64);
}

// The last target of sample b among its rows; -1: it has none.
static inline int64_t tr__gathered_last(const tr_op_desc *desc, const tr_launch *launch,
                                        int64_t b) {
    const int32_t *targets = launch->in[HEAD_TARGETS]; // [rows]
    int64_t each = tr__lce_dims(desc).rows / tr__gathered_dims(desc).rows;
    return tr__lce_last_target(targets + b * each, each);
}

// gathered: [B, C]; the first row of a sample without target. Returns how many samples
// have one.
static inline int64_t tr__gathered_take(const tr_op_desc *desc, const tr_launch *launch,
                                        char *gathered) {
    const char *x = launch->in[HEAD_X]; // [rows, C]
    int64_t samples = tr__gathered_dims(desc).rows, asked = 0;
    int64_t each = tr__lce_dims(desc).rows / samples;
    size_t bytes = (size_t)tr__gathered_row_bytes(desc);
    for (int64_t b = 0; b < samples; b++) {
        int64_t last = tr__gathered_last(desc, launch, b);
        int64_t row = b * each + (last < 0 ? 0 : last);
        memcpy(gathered + (size_t)b * bytes, x + (size_t)row * bytes, bytes);
        asked += last >= 0;
    }
    return asked;
}

// Zeros for samples without target. logits: [B, V]
static inline void tr__gathered_clear(const tr_op_desc *desc, const tr_launch *launch,
                                      float *logits) {
    tr_linear_dims dims = tr__gathered_dims(desc);
    for (int64_t b = 0; b < dims.rows; b++) {
        if (tr__gathered_last(desc, launch, b) < 0) {
            memset(logits + b * dims.out, 0, (size_t)dims.out * sizeof(float));
        }
    }
}

#endif
