// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/nn/text_pool/text_pool.h"

extern const tr_kernel TR_REAL_KERNELS(tr__text_pool_kernel);
extern const tr_kernel TR_REAL_KERNELS(tr__text_pool_backward_kernel);

const tr_cpu_kernels tr__cpu_kernels_text_pool[] = {
    {.op = &tr__op_text_pool,
     .f32 = TR_ISA_TABLE(&tr__text_pool_kernel),
     .half = TR_HALF_TABLE(&tr__text_pool_kernel)},
    {.op = &tr__op_text_pool_backward,
     .f32 = TR_ISA_TABLE(&tr__text_pool_backward_kernel),
     .half = TR_HALF_TABLE(&tr__text_pool_backward_kernel)},
    {.op = NULL},
};
