// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/nn/multiply/multiply.h"

extern const tr_kernel TR_REAL_KERNELS(tr__multiply_kernel);

const tr_cpu_kernels tr__cpu_kernels_multiply[] = {
    {.op = &tr__op_multiply,
     .f32 = TR_ISA_TABLE(&tr__multiply_kernel),
     .half = TR_HALF_TABLE(&tr__multiply_kernel)},
    {.op = NULL},
};
