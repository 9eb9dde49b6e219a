// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/nn/token_parts/token_parts.h"

extern const tr_kernel TR_REAL_KERNELS(tr__copy_kernel);
extern const tr_kernel TR_REAL_KERNELS(tr__token_parts_kernel);

const tr_cpu_kernels tr__cpu_kernels_token_parts[] = {
    {.op = &tr__op_all_gather,
     .f32 = TR_ISA_TABLE(&tr__token_parts_kernel),
     .half = TR_HALF_TABLE(&tr__token_parts_kernel)},
    {.op = &tr__op_reduce_scatter,
     .f32 = TR_ISA_TABLE(&tr__copy_kernel),
     .half = TR_HALF_TABLE(&tr__copy_kernel)},
    {.op = &tr__op_own_part,
     .f32 = TR_ISA_TABLE(&tr__token_parts_kernel),
     .half = TR_HALF_TABLE(&tr__token_parts_kernel)},
    {.op = NULL},
};
