// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/nn/pool/pool.h"

extern const tr_kernel TR_ISA_KERNELS(tr__pool_kernel);
extern const tr_kernel TR_ISA_KERNELS(tr__pool_backward_kernel);

const tr_cpu_kernels tr__cpu_kernels_pool[] = {
    {.op = &tr__op_pool, .f32 = TR_ISA_TABLE(&tr__pool_kernel)},
    {.op = &tr__op_pool_average_backward,
     .f32 = TR_ISA_TABLE(&tr__pool_backward_kernel)},
    {.op = &tr__op_pool_max_backward, .f32 = TR_ISA_TABLE(&tr__pool_backward_kernel)},
    {.op = NULL},
};
