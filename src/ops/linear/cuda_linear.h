// What launches of other ops use, too.
#ifndef TR_OPS_LINEAR_CUDA_LINEAR_H
#define TR_OPS_LINEAR_CUDA_LINEAR_H

#include "backend/cuda/kernels.h"
#include "ops/linear/cuda.h"
#include "ops/linear/dims.h"

void tr__cuda_bias(const tr_launch *launch, tr_cuda_bias_args args);
void tr__cuda_column_sums(const tr_launch *launch, tr_cuda_column_sums_args args);

// ---- products with a weight of either layout; `add`: to what is there
// y [rows, out] from x [rows, in]
void tr__cuda_linear(const tr_launch *launch, const tr_linear_dims *d, const float *x,
                     const float *w, float *y, bool add);
// dx [rows, in] from dy [rows, out]
void tr__cuda_linear_input(const tr_launch *launch, const tr_linear_dims *d,
                           const float *dy, const float *w, float *dx, bool add);
// dw, as w is laid out
void tr__cuda_linear_weight(const tr_launch *launch, const tr_linear_dims *d,
                            const float *dy, const float *x, float *dw, bool add);

#endif
