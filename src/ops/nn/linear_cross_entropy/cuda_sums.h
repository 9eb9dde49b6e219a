// The sums of a loss, for the CUDA kernels of other losses.
#ifndef TR_OPS_NN_LINEAR_CROSS_ENTROPY_CUDA_SUMS_H
#define TR_OPS_NN_LINEAR_CROSS_ENTROPY_CUDA_SUMS_H

#include "ops/nn/linear_cross_entropy/cuda.h"

#include <tranche/extend/op.h>

// sums [TR_SUMS] += each [rows], in their order.
void tr__cuda_add_row_sums(const tr_launch *launch, const tr_cuda_row_sums *each,
                           int64_t rows, double *sums);

#endif
