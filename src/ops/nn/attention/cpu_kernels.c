// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/nn/attention/attention.h"

extern const tr_kernel TR_PAIR_KERNELS(tr__attention_kernel);
extern const tr_kernel TR_PAIR_KERNELS(tr__attention_backward_kernel);
extern const tr_kernel TR_REAL_KERNELS(tr__attention_cached_kernel);

const tr_cpu_kernels tr__cpu_kernels_attention[] = {
    {.op = &tr__op_attention,
     .f32 = TR_ISA_TABLE(&tr__attention_kernel),
     .half = TR_PAIR_TABLE(&tr__attention_kernel)},
    {.op = &tr__op_attention_backward,
     .f32 = TR_ISA_TABLE(&tr__attention_backward_kernel),
     .half = TR_PAIR_TABLE(&tr__attention_backward_kernel)},
    {.op = &tr__op_attention_cached,
     .f32 = TR_ISA_TABLE(&tr__attention_cached_kernel),
     .half = TR_HALF_TABLE(&tr__attention_cached_kernel)},
    {.op = NULL},
};
