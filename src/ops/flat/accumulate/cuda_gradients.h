// Sums of gradients as kernels on the device read them, whatever type they have.
#ifndef TR_OPS_FLAT_ACCUMULATE_CUDA_GRADIENTS_H
#define TR_OPS_FLAT_ACCUMULATE_CUDA_GRADIENTS_H

#include <tranche/extend/op.h>

typedef struct tr_cuda_gradients {
    const void *first;
    double back;  // what sums in fixed point, i64, are multiplied with
    int32_t type; // tr_dtype: f32, bf16, f16 or i64
} tr_cuda_gradients;

// Those of input 0 from element `at` on.
tr_cuda_gradients tr__cuda_gradients(const tr_op_desc *desc, const tr_launch *launch,
                                     int64_t at);

#endif
