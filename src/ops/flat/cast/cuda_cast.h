// The cast, for the CUDA kernels of other ops.
#ifndef TR_OPS_FLAT_CAST_CUDA_CAST_H
#define TR_OPS_FLAT_CAST_CUDA_CAST_H

#include "ops/flat/cast/cuda.h"

#include <tranche/extend/op.h>

void tr__cuda_cast(const tr_launch *launch, const tr_cuda_cast_args *args);
// Input 0 becomes result 0, or is added to it, in the types of the description.
void tr__cuda_cast_input(const tr_op_desc *desc, const tr_launch *launch);

#endif
