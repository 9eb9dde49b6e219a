// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/flat/nonfinite/nonfinite.h"

extern const tr_kernel tr__nonfinite_kernel;

const tr_cpu_kernels tr__cpu_kernels_nonfinite[] = {
    {.op = &tr__op_nonfinite,
     .f32 = {&tr__nonfinite_kernel},
     .half = {{0}, {0}, {&tr__nonfinite_kernel}}},
    {.op = NULL},
};
