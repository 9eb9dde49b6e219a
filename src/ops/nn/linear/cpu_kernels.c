// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/nn/linear/linear.h"

extern const tr_kernel TR_REAL_KERNELS(tr__linear_backward_weight_kernel);
extern const tr_kernel TR_REAL_KERNELS(tr__linear_backward_bias_kernel);
extern const tr_kernel TR_REAL_KERNELS(tr__linear_few_kernel);
extern const tr_kernel tr__linear_kernel;
extern const tr_kernel tr__linear_backward_input_kernel;

// Products choose their instruction set themselves: so one kernel of f32 is enough, and
// one of 16 bits, where the processor multiplies bf16.
const tr_cpu_kernels tr__cpu_kernels_linear[] = {
    {.op = &tr__op_linear,
     .f32 = {&tr__linear_kernel},
     .half = {{[TR_ISA_AVX512] = &tr__linear_kernel}},
     .asked_f32 = TR_ISA_TABLE(&tr__linear_few_kernel),
     .asked_half = TR_HALF_TABLE(&tr__linear_few_kernel)},
    {.op = &tr__op_linear_backward_input,
     .f32 = {&tr__linear_backward_input_kernel},
     .half = {{[TR_ISA_AVX512] = &tr__linear_backward_input_kernel}}},
    {.op = &tr__op_linear_backward_weight,
     .f32 = TR_ISA_TABLE(&tr__linear_backward_weight_kernel),
     .half = TR_PRODUCT_TABLE(&tr__linear_backward_weight_kernel)},
    {.op = &tr__op_linear_backward_bias,
     .f32 = TR_ISA_TABLE(&tr__linear_backward_bias_kernel),
     .half = TR_PRODUCT_TABLE(&tr__linear_backward_bias_kernel)},
    {.op = NULL},
};
