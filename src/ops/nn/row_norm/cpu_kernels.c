// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/nn/row_norm/row_norm.h"

extern const tr_kernel TR_REAL_KERNELS(tr__row_norm_kernel);

const tr_cpu_kernels tr__cpu_kernels_row_norm[] = {
    {.op = &tr__op_row_norm,
     .f32 = TR_ISA_TABLE(&tr__row_norm_kernel),
     .half = TR_HALF_TABLE(&tr__row_norm_kernel)},
    {.op = NULL},
};
