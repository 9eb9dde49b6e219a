// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/nn/tanh/tanh.h"

extern const tr_kernel TR_REAL_KERNELS(tr__tanh_kernel);
extern const tr_kernel TR_REAL_KERNELS(tr__tanh_backward_kernel);

const tr_cpu_kernels tr__cpu_kernels_tanh[] = {
    {.op = &tr__op_tanh,
     .f32 = TR_ISA_TABLE(&tr__tanh_kernel),
     .half = TR_HALF_TABLE(&tr__tanh_kernel)},
    {.op = &tr__op_tanh_backward,
     .f32 = TR_ISA_TABLE(&tr__tanh_backward_kernel),
     .half = TR_HALF_TABLE(&tr__tanh_backward_kernel)},
    {.op = NULL},
};
