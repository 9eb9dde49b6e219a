// The kernels of the CPU backend: one for all three ops, which does what the desc says.
#include "backend/cpu/kernels.h"
#include "ops/nn/linear_fp8/linear_fp8.h"

extern const tr_kernel tr__linear_fp8_kernel;

#define ROW(its)                                                                       \
    {                                                                                  \
        .op = &(its), .f32 = {&tr__linear_fp8_kernel}, .half = {                       \
            {&tr__linear_fp8_kernel}                                                   \
        }                                                                              \
    }

const tr_cpu_kernels tr__cpu_kernels_linear_fp8[] = {
    ROW(tr__op_linear_fp8),
    ROW(tr__op_linear_fp8_backward_input),
    ROW(tr__op_linear_fp8_backward_weight),
    {.op = NULL},
};
