// What the reference and the kernels of the embedding say of themselves.
#ifndef TR_OPS_NN_EMBEDDING_SUPPORT_H
#define TR_OPS_NN_EMBEDDING_SUPPORT_H

#include "ops/nn/embedding/embedding.h"
#include "ops/nn/positions.h"

#include <string.h>

// The row of an id in a table of `rows` rows, -1: it is none of them.
static inline int64_t tr__embedding_row(const tr_op_desc *desc, int64_t rows,
                                        int32_t id) {
    tr_embedding_attr attr;
    memcpy(&attr, desc->attr, sizeof attr);
    int64_t row = id - attr.first;
    return row >= 0 && row < rows ? row : -1;
}

// The row that the gradient of an id is added to, -1: none.
static inline int64_t tr__embedding_trained(const tr_op_desc *desc, int64_t rows,
                                            int32_t id) {
    tr_embedding_attr attr;
    memcpy(&attr, desc->attr, sizeof attr);
    return (int64_t)id + 1 == attr.padding ? -1 : tr__embedding_row(desc, rows, id);
}

// Does this part of a sum over ranks add the positions?
static inline bool tr__embedding_adds_positions(const tr_op_desc *desc) {
    tr_embedding_attr attr;
    memcpy(&attr, desc->attr, sizeof attr);
    return !attr.positions_elsewhere;
}

// The row of the table of positions that is token `row`'s of all samples'.
static inline int64_t tr__embedding_position(const int32_t *positions, int64_t first,
                                             int64_t length, int64_t row) {
    return positions ? positions[row] : first + row % length;
}

// Does every operand have the type that the op's contract gives it where real ones are
// `real`? Ids: input `ids`, 0 in the forward, 1 in the backward. Positions: input 4.
static inline bool tr__embedding_supports(const tr_op_desc *desc, int ids,
                                          tr_dtype real) {
    bool good = desc->in[ids].dtype == TR_I32;
    for (int i = 0; i < desc->in_count; i++) {
        tr_dtype dtype = desc->in[i].dtype;
        bool plain = i == ids || (i == 4 && dtype == TR_I32);
        good = good && (plain || dtype == real || dtype == TR_NONE);
    }
    for (int i = 0; i < desc->out_count; i++) {
        tr_dtype dtype = desc->out[i].dtype, want = ids == 0 ? real : TR_F32;
        good = good && (dtype == want || dtype == TR_NONE);
    }
    return good;
}

// Bytes of the rows that are read and written, not of whole tables.
static inline void tr__embedding_cost(const tr_op_desc *desc, tr_cost *cost) {
    double count = (double)tr_shape_count(desc->out[0].shape);
    cost->flops = count;
    cost->bytes = 3 * (double)tr_dtype_bytes(desc->out[0].dtype) * count;
}

// `fresh`: the whole tables are cleared first.
static inline void tr__embedding_backward_cost(const tr_op_desc *desc, tr_cost *cost) {
    double count = (double)tr_shape_count(desc->in[0].shape);
    cost->flops = 2 * count;
    cost->bytes = ((double)tr_dtype_bytes(desc->in[0].dtype) + 4 * 4) * count;
    for (int i = 0; i < desc->out_count; i++) {
        if (desc->fresh >> i & 1) {
            cost->bytes += (double)tr_tensor_bytes(desc->out[i]);
        }
    }
}

#endif
