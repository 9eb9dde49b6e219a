// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/nn/auxiliary_loss/auxiliary_loss.h"

extern const tr_kernel TR_REAL_KERNELS(tr__auxiliary_loss_kernel);
extern const tr_kernel TR_REAL_KERNELS(tr__auxiliary_loss_backward_kernel);

const tr_cpu_kernels tr__cpu_kernels_auxiliary_loss[] = {
    {.op = &tr__op_auxiliary_loss,
     .f32 = TR_ISA_TABLE(&tr__auxiliary_loss_kernel),
     .half = TR_HALF_TABLE(&tr__auxiliary_loss_kernel)},
    {.op = &tr__op_auxiliary_loss_backward,
     .f32 = TR_ISA_TABLE(&tr__auxiliary_loss_backward_kernel),
     .half = TR_HALF_TABLE(&tr__auxiliary_loss_backward_kernel)},
    {.op = NULL},
};
