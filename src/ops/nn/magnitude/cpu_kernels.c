// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/nn/magnitude/magnitude.h"

extern const tr_kernel TR_REAL_KERNELS(tr__magnitude_kernel);
extern const tr_kernel TR_REAL_KERNELS(tr__magnitude_gradient_kernel);

const tr_cpu_kernels tr__cpu_kernels_magnitude[] = {
    {.op = &tr__op_magnitude,
     .f32 = TR_ISA_TABLE(&tr__magnitude_kernel),
     .half = TR_HALF_TABLE(&tr__magnitude_kernel)},
    {.op = &tr__op_magnitude_gradient,
     .f32 = TR_ISA_TABLE(&tr__magnitude_gradient_kernel),
     .half = TR_HALF_TABLE(&tr__magnitude_gradient_kernel)},
    {.op = NULL},
};
