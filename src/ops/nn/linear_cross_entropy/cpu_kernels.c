// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/nn/linear_cross_entropy/linear_cross_entropy.h"

extern const tr_kernel TR_REAL_KERNELS(tr__lce_kernel);
extern const tr_kernel TR_REAL_KERNELS(tr__lce_backward_kernel);
extern const tr_kernel TR_REAL_KERNELS(tr__lce_logits_few_kernel);
extern const tr_kernel tr__lce_logits_kernel;
extern const tr_kernel tr__lce_logits_rows_kernel;

// The product of the logits chooses its instruction set itself.
const tr_cpu_kernels tr__cpu_kernels_linear_cross_entropy[] = {
    {.op = &tr__op_linear_cross_entropy,
     .f32 = TR_ISA_TABLE(&tr__lce_kernel),
     .half = TR_PRODUCT_TABLE(&tr__lce_kernel)},
    {.op = &tr__op_linear_cross_entropy_backward,
     .f32 = TR_ISA_TABLE(&tr__lce_backward_kernel),
     .half = TR_PRODUCT_TABLE(&tr__lce_backward_kernel)},
    {.op = &tr__op_linear_cross_entropy_logits,
     .f32 = {&tr__lce_logits_kernel},
     .half = {{[TR_ISA_AVX512] = &tr__lce_logits_kernel}},
     .asked_f32 = TR_ISA_TABLE(&tr__lce_logits_few_kernel),
     .asked_half = TR_HALF_TABLE(&tr__lce_logits_few_kernel)},
    {.op = &tr__op_linear_cross_entropy_logits_rows,
     .f32 = {&tr__lce_logits_rows_kernel},
     .half = {{[TR_ISA_AVX512] = &tr__lce_logits_rows_kernel}}},
    {.op = NULL},
};
