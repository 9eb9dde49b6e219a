// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/nn/broadcast/broadcast.h"

extern const tr_kernel TR_REAL_KERNELS(tr__expand_kernel);
extern const tr_kernel TR_REAL_KERNELS(tr__sum_kernel);
extern const tr_kernel TR_REAL_KERNELS(tr__repeat_kernel);
extern const tr_kernel TR_REAL_KERNELS(tr__repeat_backward_kernel);

const tr_cpu_kernels tr__cpu_kernels_broadcast[] = {
    {.op = &tr__op_expand,
     .f32 = TR_ISA_TABLE(&tr__expand_kernel),
     .half = TR_HALF_TABLE(&tr__expand_kernel)},
    {.op = &tr__op_sum,
     .f32 = TR_ISA_TABLE(&tr__sum_kernel),
     .half = TR_HALF_TABLE(&tr__sum_kernel)},
    {.op = &tr__op_repeat,
     .f32 = TR_ISA_TABLE(&tr__repeat_kernel),
     .half = TR_HALF_TABLE(&tr__repeat_kernel)},
    {.op = &tr__op_repeat_backward,
     .f32 = TR_ISA_TABLE(&tr__repeat_backward_kernel),
     .half = TR_HALF_TABLE(&tr__repeat_backward_kernel)},
    {.op = NULL},
};
