// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/flat/zero/zero.h"

extern const tr_kernel tr__zero_kernel;

const tr_cpu_kernels tr__cpu_kernels_zero[] = {
    {.op = &tr__op_zero,
     .f32 = {&tr__zero_kernel},
     .half = {{0}, {&tr__zero_kernel}, {0}}},
    {.op = NULL},
};
