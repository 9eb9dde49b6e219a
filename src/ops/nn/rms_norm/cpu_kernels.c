// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/nn/rms_norm/rms_norm.h"

extern const tr_kernel TR_REAL_KERNELS(tr__rms_norm_kernel);
extern const tr_kernel TR_REAL_KERNELS(tr__rms_norm_backward_kernel);

const tr_cpu_kernels tr__cpu_kernels_rms_norm[] = {
    {.op = &tr__op_rms_norm,
     .f32 = TR_ISA_TABLE(&tr__rms_norm_kernel),
     .half = TR_HALF_TABLE(&tr__rms_norm_kernel)},
    {.op = &tr__op_rms_norm_backward,
     .f32 = TR_ISA_TABLE(&tr__rms_norm_backward_kernel),
     .half = TR_HALF_TABLE(&tr__rms_norm_backward_kernel)},
    {.op = NULL},
};
