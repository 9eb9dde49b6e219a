#include "backend/cuda/kernels.h"
#include "ops/nn/all_reduce/all_reduce.h"

extern const tr_cuda_kernels tr__cuda_kernels_all_reduce[];
extern const tr_kernel tr__copy_cuda;

const tr_cuda_kernels tr__cuda_kernels_all_reduce[] = {
    {&tr__op_all_reduce, &tr__copy_cuda},
    {&tr__op_all_reduce_gradient, &tr__copy_cuda},
    {NULL, NULL},
};
