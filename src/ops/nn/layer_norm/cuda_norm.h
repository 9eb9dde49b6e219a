// What launches of other normalizations use, too.
#ifndef TR_OPS_NN_LAYER_NORM_CUDA_NORM_H
#define TR_OPS_NN_LAYER_NORM_CUDA_NORM_H

#include "backend/cuda/kernels.h"
#include "ops/nn/layer_norm/cuda.h"

// A normalization by `narrow`, which is made of tr_cuda_norm_narrow, or, for wide rows,
// by `wide` (tr_cuda_norm_wide). norm->inverse and norm->vector are not looked at.
void tr__cuda_norm_rows(const tr_launch *launch, const tr_cuda_function *narrow,
                        const tr_cuda_function *wide, const tr_cuda_norm *norm);
// Has the backward of rows of that width a kernel that reads dy and x once?
bool tr__cuda_norm_has_both(int64_t width);
// Bytes that it works in.
size_t tr__cuda_norm_both_bytes(int64_t rows, int64_t width);
// dx, and the gradients that are wanted, by `both`, which is made of tr_cuda_both.
// norm->part, ->stages and ->inverse are not looked at. parts:
// tr__cuda_norm_both_bytes.
void tr__cuda_norm_both(const tr_launch *launch, const tr_cuda_function *both,
                        const tr_cuda_norm_backward *norm, float *parts);

#endif
