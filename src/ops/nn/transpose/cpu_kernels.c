// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/nn/transpose/transpose.h"

extern const tr_kernel TR_REAL_KERNELS(tr__transpose_kernel);

const tr_cpu_kernels tr__cpu_kernels_transpose[] = {
    {.op = &tr__op_transpose,
     .f32 = TR_ISA_TABLE(&tr__transpose_kernel),
     .half = TR_HALF_TABLE(&tr__transpose_kernel)},
    {.op = NULL},
};
