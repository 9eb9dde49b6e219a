// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/nn/pointwise/pointwise.h"

extern const tr_kernel TR_REAL_KERNELS(tr__pointwise_kernel);
extern const tr_kernel TR_REAL_KERNELS(tr__pointwise_backward_kernel);

const tr_cpu_kernels tr__cpu_kernels_pointwise[] = {
    {.op = &tr__op_pointwise,
     .f32 = TR_ISA_TABLE(&tr__pointwise_kernel),
     .half = TR_HALF_TABLE(&tr__pointwise_kernel)},
    {.op = &tr__op_pointwise_backward,
     .f32 = TR_ISA_TABLE(&tr__pointwise_backward_kernel),
     .half = TR_HALF_TABLE(&tr__pointwise_backward_kernel)},
    {.op = NULL},
};
