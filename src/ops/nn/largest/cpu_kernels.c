// The kernels of the CPU backend: one for all types. What is gathered is a few numbers,
// which the reference moves.
#include "backend/cpu/kernels.h"
#include "ops/nn/largest/largest.h"

extern const tr_kernel tr__largest_kernel;

const tr_cpu_kernels tr__cpu_kernels_largest[] = {
    {.op = &tr__op_largest,
     .f32 = {&tr__largest_kernel},
     .half = {{&tr__largest_kernel}}},
    {.op = NULL},
};
