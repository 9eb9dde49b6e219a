// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/flat/orthogonal/orthogonal.h"

extern const tr_kernel tr__direction_kernel, tr__orthogonal_kernel;

const tr_cpu_kernels tr__cpu_kernels_orthogonal[] = {
    {.op = &tr__op_direction,
     .f32 = {&tr__direction_kernel},
     .half = {{0}, {&tr__direction_kernel}, {0}}},
    {.op = &tr__op_orthogonal,
     .f32 = {&tr__orthogonal_kernel},
     .half = {{0}, {&tr__orthogonal_kernel}, {0}}},
    {.op = NULL},
};
