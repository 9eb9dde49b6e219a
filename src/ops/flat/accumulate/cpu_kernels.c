// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/flat/accumulate/accumulate.h"

extern const tr_kernel TR_ISA_KERNELS(tr__accumulate_kernel);
extern const tr_kernel tr__accumulate_half_kernel;

const tr_cpu_kernels tr__cpu_kernels_accumulate[] = {
    {.op = &tr__op_accumulate,
     .f32 = TR_ISA_TABLE(&tr__accumulate_kernel),
     .half = {{0}, {&tr__accumulate_half_kernel}, {&tr__accumulate_half_kernel}}},
    {.op = NULL},
};
