// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/nn/all_reduce/all_reduce.h"

extern const tr_kernel TR_REAL_KERNELS(tr__copy_kernel);

const tr_cpu_kernels tr__cpu_kernels_all_reduce[] = {
    {.op = &tr__op_all_reduce,
     .f32 = TR_ISA_TABLE(&tr__copy_kernel),
     .half = TR_HALF_TABLE(&tr__copy_kernel)},
    {.op = &tr__op_all_reduce_gradient,
     .f32 = TR_ISA_TABLE(&tr__copy_kernel),
     .half = TR_HALF_TABLE(&tr__copy_kernel)},
    {.op = NULL},
};
