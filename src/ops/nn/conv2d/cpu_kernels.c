// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/nn/conv2d/conv2d.h"

extern const tr_kernel tr__conv2d_kernel;
extern const tr_kernel tr__conv2d_backward_input_kernel;
extern const tr_kernel tr__conv2d_backward_weight_kernel;

// Convolutions choose their instruction set themselves: so one kernel of f32 is enough,
// and one of 16 bits, where the processor multiplies bf16.
const tr_cpu_kernels tr__cpu_kernels_conv2d[] = {
    {.op = &tr__op_conv2d,
     .f32 = {&tr__conv2d_kernel},
     .half = {{[TR_ISA_AVX512] = &tr__conv2d_kernel}}},
    {.op = &tr__op_conv2d_backward_input,
     .f32 = {&tr__conv2d_backward_input_kernel},
     .half = {{[TR_ISA_AVX512] = &tr__conv2d_backward_input_kernel}}},
    {.op = &tr__op_conv2d_backward_weight,
     .f32 = {&tr__conv2d_backward_weight_kernel},
     .half = {{[TR_ISA_AVX512] = &tr__conv2d_backward_weight_kernel}}},
    {.op = NULL},
};
