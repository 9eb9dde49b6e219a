// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/nn/cross_entropy/cross_entropy.h"

extern const tr_kernel TR_REAL_KERNELS(tr__cross_entropy_kernel);
extern const tr_kernel TR_REAL_KERNELS(tr__cross_entropy_backward_kernel);
extern const tr_kernel TR_REAL_KERNELS(tr__cross_entropy_each_kernel);
extern const tr_kernel TR_REAL_KERNELS(tr__cross_entropy_each_backward_kernel);
extern const tr_kernel TR_REAL_KERNELS(tr__cross_entropy_logits_kernel);

const tr_cpu_kernels tr__cpu_kernels_cross_entropy[] = {
    {.op = &tr__op_cross_entropy,
     .f32 = TR_ISA_TABLE(&tr__cross_entropy_kernel),
     .half = TR_HALF_TABLE(&tr__cross_entropy_kernel)},
    {.op = &tr__op_cross_entropy_backward,
     .f32 = TR_ISA_TABLE(&tr__cross_entropy_backward_kernel),
     .half = TR_HALF_TABLE(&tr__cross_entropy_backward_kernel)},
    {.op = &tr__op_cross_entropy_each,
     .f32 = TR_ISA_TABLE(&tr__cross_entropy_each_kernel),
     .half = TR_HALF_TABLE(&tr__cross_entropy_each_kernel)},
    {.op = &tr__op_cross_entropy_each_backward,
     .f32 = TR_ISA_TABLE(&tr__cross_entropy_each_backward_kernel),
     .half = TR_HALF_TABLE(&tr__cross_entropy_each_backward_kernel)},
    {.op = &tr__op_cross_entropy_logits,
     .f32 = TR_ISA_TABLE(&tr__cross_entropy_logits_kernel),
     .half = TR_HALF_TABLE(&tr__cross_entropy_logits_kernel)},
    {.op = NULL},
};
