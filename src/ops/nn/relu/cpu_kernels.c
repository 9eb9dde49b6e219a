// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/nn/relu/relu.h"

extern const tr_kernel TR_REAL_KERNELS(tr__relu_kernel);
extern const tr_kernel TR_REAL_KERNELS(tr__relu_backward_kernel);

const tr_cpu_kernels tr__cpu_kernels_relu[] = {
    {.op = &tr__op_relu,
     .f32 = TR_ISA_TABLE(&tr__relu_kernel),
     .half = TR_HALF_TABLE(&tr__relu_kernel)},
    {.op = &tr__op_relu_backward,
     .f32 = TR_ISA_TABLE(&tr__relu_backward_kernel),
     .half = TR_HALF_TABLE(&tr__relu_backward_kernel)},
    {.op = NULL},
};
