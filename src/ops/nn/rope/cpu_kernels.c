// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/nn/rope/rope.h"

extern const tr_kernel TR_REAL_KERNELS(tr__rope_kernel);
extern const tr_kernel TR_REAL_KERNELS(tr__rope_backward_kernel);

const tr_cpu_kernels tr__cpu_kernels_rope[] = {
    {.op = &tr__op_rope,
     .f32 = TR_ISA_TABLE(&tr__rope_kernel),
     .half = TR_HALF_TABLE(&tr__rope_kernel)},
    {.op = &tr__op_rope_backward,
     .f32 = TR_ISA_TABLE(&tr__rope_backward_kernel),
     .half = TR_HALF_TABLE(&tr__rope_backward_kernel)},
    {.op = NULL},
};
