// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/nn/rows/rows.h"

extern const tr_kernel TR_REAL_KERNELS(tr__take_rows_kernel);
extern const tr_kernel TR_REAL_KERNELS(tr__put_rows_kernel);

// Integers are taken by the reference.
const tr_cpu_kernels tr__cpu_kernels_rows[] = {
    {.op = &tr__op_take_rows,
     .f32 = TR_ISA_TABLE(&tr__take_rows_kernel),
     .half = TR_HALF_TABLE(&tr__take_rows_kernel)},
    {.op = &tr__op_put_rows,
     .f32 = TR_ISA_TABLE(&tr__put_rows_kernel),
     .half = TR_HALF_TABLE(&tr__put_rows_kernel)},
    {.op = NULL},
};
