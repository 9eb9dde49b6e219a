// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/nn/row_squares/row_squares.h"

extern const tr_kernel TR_REAL_KERNELS(tr__row_squares_kernel);

const tr_cpu_kernels tr__cpu_kernels_row_squares[] = {
    {.op = &tr__op_row_squares,
     .f32 = TR_ISA_TABLE(&tr__row_squares_kernel),
     .half = TR_HALF_TABLE(&tr__row_squares_kernel)},
    {.op = NULL},
};
