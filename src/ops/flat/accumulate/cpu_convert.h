// Sums of gradients as f32, for the CPU kernels that read them.
#ifndef TR_OPS_FLAT_ACCUMULATE_CPU_CONVERT_H
#define TR_OPS_FLAT_ACCUMULATE_CPU_CONVERT_H

#include "ops/flat/accumulate/accumulate.h"

// Elements [at, at + count) of them as f32: where they lie, or in the workspace.
const float *tr__sums_at(const tr_op_desc *desc, const tr_launch *launch, int64_t at,
                         int64_t count);

// x: [count] f32 = sums: [count] of `dtype` (bf16, f16 or i64; of i64 divided by
// `scale`), rounded once. By the target's level and up to its workers.
void tr__sums_convert(tr_dtype dtype, const void *sums, int64_t count, double scale,
                      const tr_target *target, float *x);

#endif
