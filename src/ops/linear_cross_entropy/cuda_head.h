// What the launches of slices of the head use, too.
#ifndef TR_OPS_LINEAR_CROSS_ENTROPY_CUDA_HEAD_H
#define TR_OPS_LINEAR_CROSS_ENTROPY_CUDA_HEAD_H

#include "ops/linear/cuda_linear.h"

// Rows of a chunk, whose logits are made at once.
int64_t tr__cuda_head_rows(const tr_op_desc *desc);
// Logits of rows `first` on. d->rows: how many
void tr__cuda_head_logits(const tr_op_desc *desc, const tr_launch *launch,
                          const tr_linear_dims *d, int64_t first, float *logits);
// What the gradients of a chunk's logits give, of x's type, in rows as long as those of
// the logits (TR_CUDA_ROW_PUT). The first chunk writes what the launch writes; the
// others add.
void tr__cuda_head_gradients(const tr_op_desc *desc, const tr_launch *launch,
                             const tr_linear_dims *d, int64_t first,
                             const void *gradients);

#endif
