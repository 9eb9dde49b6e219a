// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/nn/silu/silu.h"

extern const tr_kernel TR_REAL_KERNELS(tr__silu_kernel);
extern const tr_kernel TR_REAL_KERNELS(tr__silu_backward_kernel);

const tr_cpu_kernels tr__cpu_kernels_silu[] = {
    {.op = &tr__op_silu,
     .f32 = TR_ISA_TABLE(&tr__silu_kernel),
     .half = TR_HALF_TABLE(&tr__silu_kernel)},
    {.op = &tr__op_silu_backward,
     .f32 = TR_ISA_TABLE(&tr__silu_backward_kernel),
     .half = TR_HALF_TABLE(&tr__silu_backward_kernel)},
    {.op = NULL},
};
