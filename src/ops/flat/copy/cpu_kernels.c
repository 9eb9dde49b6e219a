// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/flat/copy/copy.h"

extern const tr_kernel TR_REAL_KERNELS(tr__copy_kernel);

const tr_cpu_kernels tr__cpu_kernels_copy[] = {
    {.op = &tr__op_copy,
     .f32 = TR_ISA_TABLE(&tr__copy_kernel),
     .half = TR_HALF_TABLE(&tr__copy_kernel)},
    {.op = NULL},
};
