// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/nn/dropout/dropout.h"

extern const tr_kernel TR_REAL_KERNELS(tr__dropout_kernel);

const tr_cpu_kernels tr__cpu_kernels_dropout[] = {
    {.op = &tr__op_dropout,
     .f32 = TR_ISA_TABLE(&tr__dropout_kernel),
     .half = TR_HALF_TABLE(&tr__dropout_kernel)},
    {.op = NULL},
};
