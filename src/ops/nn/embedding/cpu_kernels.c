// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/nn/embedding/embedding.h"

extern const tr_kernel TR_REAL_KERNELS(tr__embedding_kernel);
extern const tr_kernel TR_REAL_KERNELS(tr__embedding_backward_kernel);

const tr_cpu_kernels tr__cpu_kernels_embedding[] = {
    {.op = &tr__op_embedding,
     .f32 = TR_ISA_TABLE(&tr__embedding_kernel),
     .half = TR_HALF_TABLE(&tr__embedding_kernel)},
    {.op = &tr__op_embedding_backward,
     .f32 = TR_ISA_TABLE(&tr__embedding_backward_kernel),
     .half = TR_HALF_TABLE(&tr__embedding_backward_kernel)},
    {.op = NULL},
};
