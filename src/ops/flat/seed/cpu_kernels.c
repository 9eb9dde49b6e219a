// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/flat/seed/seed.h"

extern const tr_kernel tr__seed_kernel;

const tr_cpu_kernels tr__cpu_kernels_seed[] = {
    {.op = &tr__op_seed,
     .f32 = {&tr__seed_kernel},
     .half = {{&tr__seed_kernel}, {&tr__seed_kernel}}},
    {.op = NULL},
};
