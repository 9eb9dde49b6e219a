// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/flat/exact_sums/exact_sums.h"

extern const tr_kernel tr__exact_sums_kernel, tr__exact_values_kernel;

const tr_cpu_kernels tr__cpu_kernels_exact_sums[] = {
    {.op = &tr__op_exact_sums, .f32 = {&tr__exact_sums_kernel}},
    {.op = &tr__op_exact_values, .f32 = {&tr__exact_values_kernel}},
    {.op = NULL},
};
