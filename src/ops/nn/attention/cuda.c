#include "ops/nn/attention/attention.h"

#include "backend/cuda/kernels.h"
#include "ops/nn/attention/cached.h"

extern const tr_cuda_kernels tr__cuda_kernels_attention[];
extern const tr_kernel tr__cuda_attention, tr__cuda_attention_backward,
    tr__cuda_attention_cached, tr__cuda_attention_library,
    tr__cuda_attention_backward_library;

// The library's come first, where a plan asks for it.
const tr_cuda_kernels tr__cuda_kernels_attention[] = {
    {&tr__op_attention, &tr__cuda_attention_library},
    {&tr__op_attention_backward, &tr__cuda_attention_backward_library},
    {&tr__op_attention, &tr__cuda_attention},
    {&tr__op_attention_backward, &tr__cuda_attention_backward},
    {&tr__op_attention_cached, &tr__cuda_attention_cached},
    {NULL, NULL},
};
