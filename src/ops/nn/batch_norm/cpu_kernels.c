// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/nn/batch_norm/batch_norm.h"

extern const tr_kernel TR_ISA_KERNELS(tr__batch_stat_kernel);
extern const tr_kernel TR_ISA_KERNELS(tr__batch_stat_backward_kernel);
extern const tr_kernel TR_ISA_KERNELS(tr__batch_norm_kernel);
extern const tr_kernel TR_ISA_KERNELS(tr__batch_norm_backward_kernel);

const tr_cpu_kernels tr__cpu_kernels_batch_norm[] = {
    {.op = &tr__op_batch_stat, .f32 = TR_ISA_TABLE(&tr__batch_stat_kernel)},
    {.op = &tr__op_batch_stat_own, .f32 = TR_ISA_TABLE(&tr__batch_stat_kernel)},
    {.op = &tr__op_batch_stat_rank, .f32 = TR_ISA_TABLE(&tr__batch_stat_kernel)},
    {.op = &tr__op_batch_stat_backward,
     .f32 = TR_ISA_TABLE(&tr__batch_stat_backward_kernel)},
    {.op = &tr__op_batch_norm, .f32 = TR_ISA_TABLE(&tr__batch_norm_kernel)},
    {.op = &tr__op_batch_norm_backward,
     .f32 = TR_ISA_TABLE(&tr__batch_norm_backward_kernel)},
    {.op = NULL},
};
