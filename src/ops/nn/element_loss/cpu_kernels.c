// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/nn/element_loss/element_loss.h"

extern const tr_kernel TR_REAL_KERNELS(tr__element_loss_kernel);
extern const tr_kernel TR_REAL_KERNELS(tr__element_loss_backward_kernel);
extern const tr_kernel TR_REAL_KERNELS(tr__element_logits_kernel);

const tr_cpu_kernels tr__cpu_kernels_element_loss[] = {
    {.op = &tr__op_element_loss,
     .f32 = TR_ISA_TABLE(&tr__element_loss_kernel),
     .half = TR_HALF_TABLE(&tr__element_loss_kernel)},
    {.op = &tr__op_element_loss_backward,
     .f32 = TR_ISA_TABLE(&tr__element_loss_backward_kernel),
     .half = TR_HALF_TABLE(&tr__element_loss_backward_kernel)},
    {.op = &tr__op_element_logits,
     .f32 = TR_ISA_TABLE(&tr__element_logits_kernel),
     .half = TR_HALF_TABLE(&tr__element_logits_kernel)},
    {.op = NULL},
};
