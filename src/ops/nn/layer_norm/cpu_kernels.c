// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/nn/layer_norm/layer_norm.h"

extern const tr_kernel TR_REAL_KERNELS(tr__layer_norm_kernel);
extern const tr_kernel TR_REAL_KERNELS(tr__layer_norm_backward_kernel);
extern const tr_kernel TR_REAL_KERNELS(tr__residual_norm_kernel);

const tr_cpu_kernels tr__cpu_kernels_layer_norm[] = {
    {.op = &tr__op_layer_norm,
     .f32 = TR_ISA_TABLE(&tr__layer_norm_kernel),
     .half = TR_HALF_TABLE(&tr__layer_norm_kernel)},
    {.op = &tr__op_layer_norm_backward,
     .f32 = TR_ISA_TABLE(&tr__layer_norm_backward_kernel),
     .half = TR_HALF_TABLE(&tr__layer_norm_backward_kernel)},
    {.op = &tr__op_residual_norm,
     .f32 = TR_ISA_TABLE(&tr__residual_norm_kernel),
     .half = TR_HALF_TABLE(&tr__residual_norm_kernel)},
    {.op = NULL},
};
