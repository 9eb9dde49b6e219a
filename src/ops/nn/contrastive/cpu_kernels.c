// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/nn/contrastive/contrastive.h"

extern const tr_kernel TR_ISA_KERNELS(tr__contrastive_kernel);
extern const tr_kernel TR_ISA_KERNELS(tr__contrastive_backward_kernel);

const tr_cpu_kernels tr__cpu_kernels_contrastive[] = {
    {.op = &tr__op_contrastive, .f32 = TR_ISA_TABLE(&tr__contrastive_kernel)},
    {.op = &tr__op_contrastive_backward,
     .f32 = TR_ISA_TABLE(&tr__contrastive_backward_kernel)},
    {.op = NULL},
};
