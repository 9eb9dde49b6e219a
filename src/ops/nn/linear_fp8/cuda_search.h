// The search for the largest absolute value of a tensor on a GPU.
#ifndef TR_OPS_NN_LINEAR_FP8_CUDA_SEARCH_H
#define TR_OPS_NN_LINEAR_FP8_CUDA_SEARCH_H

#include "ops/nn/linear_fp8/cuda.h"

#include <tranche/extend/op.h>

// The blocks that search so many elements.
int64_t tr__cuda_fp8_parts(int64_t count);
// What each of `blocks` blocks finds goes to args->parts [blocks].
void tr__cuda_fp8_search(const tr_launch *launch, const tr_cuda_fp8_largest_args *args,
                         int64_t blocks);

#endif
