// The cast, for the CUDA kernels of other ops.
#ifndef TR_OPS_CAST_CUDA_CAST_H
#define TR_OPS_CAST_CUDA_CAST_H

#include "ops/cast/cuda.h"

#include <tranche/extend/op.h>

void tr__cuda_cast(const tr_launch *launch, const tr_cuda_cast_args *args);

#endif
