// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/nn/softmax/softmax.h"

extern const tr_kernel TR_REAL_KERNELS(tr__softmax_kernel);
extern const tr_kernel TR_REAL_KERNELS(tr__softmax_backward_kernel);

const tr_cpu_kernels tr__cpu_kernels_softmax[] = {
    {.op = &tr__op_softmax,
     .f32 = TR_ISA_TABLE(&tr__softmax_kernel),
     .half = TR_HALF_TABLE(&tr__softmax_kernel)},
    {.op = &tr__op_softmax_backward,
     .f32 = TR_ISA_TABLE(&tr__softmax_backward_kernel),
     .half = TR_HALF_TABLE(&tr__softmax_backward_kernel)},
    {.op = NULL},
};
