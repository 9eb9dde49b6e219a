// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/flat/cast/cast.h"

extern const tr_kernel tr__cast_kernel;

const tr_cpu_kernels tr__cpu_kernels_cast[] = {
    {.op = &tr__op_cast,
     .f32 = {&tr__cast_kernel},
     .half = {{&tr__cast_kernel}, {&tr__cast_kernel}}},
    {.op = NULL},
};
