// Sums of gradients as f32, for the CUDA kernels that read them.
#ifndef TR_OPS_ACCUMULATE_CUDA_CONVERT_H
#define TR_OPS_ACCUMULATE_CUDA_CONVERT_H

#include "ops/accumulate/accumulate.h"

// How many of them a launch reads at a time: those of f32 all at once.
int64_t tr__cuda_sums_most(const tr_op_desc *desc);
// Elements [at, at + count) as f32: where they lie, or in the workspace
// (tr__sums_workspace).
const float *tr__cuda_sums_at(const tr_op_desc *desc, const tr_launch *launch,
                              int64_t at, int64_t count);

#endif
