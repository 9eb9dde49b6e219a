// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/nn/bias/bias.h"

extern const tr_kernel TR_REAL_KERNELS(tr__bias_kernel);

const tr_cpu_kernels tr__cpu_kernels_bias[] = {
    {.op = &tr__op_bias,
     .f32 = TR_ISA_TABLE(&tr__bias_kernel),
     .half = TR_HALF_TABLE(&tr__bias_kernel)},
    {.op = NULL},
};
