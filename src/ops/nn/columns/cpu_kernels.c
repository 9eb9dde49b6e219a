// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/nn/columns/columns.h"

extern const tr_kernel TR_REAL_KERNELS(tr__add_columns_kernel);
extern const tr_kernel TR_REAL_KERNELS(tr__take_columns_kernel);
extern const tr_kernel TR_REAL_KERNELS(tr__put_columns_kernel);
extern const tr_kernel TR_REAL_KERNELS(tr__join_columns_kernel);

const tr_cpu_kernels tr__cpu_kernels_columns[] = {
    {.op = &tr__op_add_columns,
     .f32 = TR_ISA_TABLE(&tr__add_columns_kernel),
     .half = TR_HALF_TABLE(&tr__add_columns_kernel)},
    {.op = &tr__op_take_columns,
     .f32 = TR_ISA_TABLE(&tr__take_columns_kernel),
     .half = TR_HALF_TABLE(&tr__take_columns_kernel)},
    {.op = &tr__op_put_columns,
     .f32 = TR_ISA_TABLE(&tr__put_columns_kernel),
     .half = TR_HALF_TABLE(&tr__put_columns_kernel)},
    {.op = &tr__op_join_columns,
     .f32 = TR_ISA_TABLE(&tr__join_columns_kernel),
     .half = TR_HALF_TABLE(&tr__join_columns_kernel)},
    {.op = NULL},
};
