// What launches of other normalizations use, too.
#ifndef TR_OPS_NN_LAYER_NORM_CUDA_NORM_H
#define TR_OPS_NN_LAYER_NORM_CUDA_NORM_H

#include "backend/cuda/kernels.h"
#include "ops/nn/layer_norm/cuda.h"

// Has the backward of rows of that width a kernel that reads dy and x once?
bool tr__cuda_norm_has_both(int64_t width);
// Bytes that it works in.
size_t tr__cuda_norm_both_bytes(int64_t rows, int64_t width);
// dx, and the gradients that are wanted, by tr_cuda_both of `narrow`, or of `wide` for
// wide rows. norm->part is not looked at. parts: tr__cuda_norm_both_bytes.
void tr__cuda_norm_both(const tr_launch *launch, const tr_cuda_function *narrow,
                        const tr_cuda_function *wide, const tr_cuda_norm_backward *norm,
                        float *parts);

#endif
