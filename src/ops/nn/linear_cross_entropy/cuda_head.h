// What the launches of slices of the head use, too.
#ifndef TR_OPS_NN_LINEAR_CROSS_ENTROPY_CUDA_HEAD_H
#define TR_OPS_NN_LINEAR_CROSS_ENTROPY_CUDA_HEAD_H

#include "ops/nn/linear/cuda_linear.h"

// Rows of a chunk, whose logits are made at once, and the bytes of these; their type,
// and elements from a row of them to the next.
int64_t tr__cuda_head_rows(const tr_op_desc *desc);
size_t tr__cuda_logits_bytes(const tr_op_desc *desc);
tr_dtype tr__cuda_logits_real(const tr_op_desc *desc);
int64_t tr__cuda_logits_row(const tr_linear_dims *d);
// tr_kernel.padding: the weight's rows, and its gradient's, are filled up to
// tr__cuda_logits_row. So many rows products take: these, or V where the plan has no
// zeros there.
int64_t tr__cuda_head_padding(const tr_op_desc *desc, int input);
int64_t tr__cuda_head_padded(const tr_op_desc *desc);
// Makes something of the logits of rows `first` on; part->rows: how many.
typedef void tr_cuda_head_chunk(const tr_op_desc *desc, const tr_launch *launch,
                                const tr_linear_dims *part, int64_t first,
                                void *logits);

// A walk through all rows, chunk by chunk.
typedef struct tr_cuda_head_walk {
    void *room; // of a chunk's logits
    void *kept; // a slice that keeps its logits: those of all rows; NULL: they are not
    tr_cuda_head_chunk *take; // of each chunk
    // Also makes what the gradients of the logits give, which `take` has left in their
    // place, of x's type, in rows as long, with zeros behind them (tr_cuda_row_put).
    // The first chunk writes what the launch writes; the others add.
    bool gradients;
} tr_cuda_head_walk;

// Logits that are kept are made where they are kept; with `gradients` they are there
// already, and a copy of them is changed.
void tr__cuda_head_chunks(const tr_op_desc *desc, const tr_launch *launch,
                          tr_cuda_head_walk walk);

#endif
