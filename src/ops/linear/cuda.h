#ifndef TR_OPS_LINEAR_CUDA_H
#define TR_OPS_LINEAR_CUDA_H

#include "backend/cuda/kernels.h"
#include "backend/cuda/launchers.h"
#ifndef __cplusplus
#include "ops/linear/dims.h"
#endif

// y += bias (NULL: nothing), then max(y, 0) if asked. y: [rows, width]
TR_CUDA_LAUNCHER void tr_cuda_bias(float *y, const float *bias, int64_t rows,
                                   int64_t width, bool relu, void *stream);
// sum: [width], = or += the sum of the rows of x [rows, width]
TR_CUDA_LAUNCHER void tr_cuda_column_sums(const float *x, int64_t rows, int64_t width,
                                          float *sum, bool add, void *stream);

#ifndef __cplusplus
// ---- cuda.c: products with a weight of either layout; `add`: to what is there
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

#endif
