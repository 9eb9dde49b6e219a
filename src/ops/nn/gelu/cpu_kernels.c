// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/nn/gelu/gelu.h"

extern const tr_kernel TR_REAL_KERNELS(tr__gelu_kernel);
extern const tr_kernel TR_REAL_KERNELS(tr__gelu_backward_kernel);

const tr_cpu_kernels tr__cpu_kernels_gelu[] = {
    {.op = &tr__op_gelu,
     .f32 = TR_ISA_TABLE(&tr__gelu_kernel),
     .half = TR_HALF_TABLE(&tr__gelu_kernel)},
    {.op = &tr__op_gelu_backward,
     .f32 = TR_ISA_TABLE(&tr__gelu_backward_kernel),
     .half = TR_HALF_TABLE(&tr__gelu_backward_kernel)},
    {.op = NULL},
};
