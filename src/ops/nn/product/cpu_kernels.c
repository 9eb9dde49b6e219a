// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/nn/product/product.h"

extern const tr_kernel tr__product_kernel;

// Products choose their instruction set themselves.
const tr_cpu_kernels tr__cpu_kernels_product[] = {
    {.op = &tr__op_product,
     .f32 = {&tr__product_kernel},
     .half = {{[TR_ISA_AVX512] = &tr__product_kernel}}},
    {.op = NULL},
};
