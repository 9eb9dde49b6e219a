#include "backend/cuda/kernels.h"
#include "ops/nn/reshape/reshape.h"

extern const tr_cuda_kernels tr__cuda_kernels_reshape[];
extern const tr_kernel tr__copy_cuda;

const tr_cuda_kernels tr__cuda_kernels_reshape[] = {
    {&tr__op_reshape, &tr__copy_cuda},
    {NULL, NULL},
};
