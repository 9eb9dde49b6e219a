// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/nn/swiglu/swiglu.h"

extern const tr_kernel TR_REAL_KERNELS(tr__swiglu_kernel);
extern const tr_kernel TR_REAL_KERNELS(tr__swiglu_backward_kernel);

const tr_cpu_kernels tr__cpu_kernels_swiglu[] = {
    {.op = &tr__op_swiglu,
     .f32 = TR_ISA_TABLE(&tr__swiglu_kernel),
     .half = TR_HALF_TABLE(&tr__swiglu_kernel)},
    {.op = &tr__op_swiglu_backward,
     .f32 = TR_ISA_TABLE(&tr__swiglu_backward_kernel),
     .half = TR_HALF_TABLE(&tr__swiglu_backward_kernel)},
    {.op = NULL},
};
