// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/nn/residual/residual.h"

extern const tr_kernel TR_REAL_KERNELS(tr__residual_kernel);

const tr_cpu_kernels tr__cpu_kernels_residual[] = {
    {.op = &tr__op_residual,
     .f32 = TR_ISA_TABLE(&tr__residual_kernel),
     .half = TR_HALF_TABLE(&tr__residual_kernel)},
    {.op = NULL},
};
