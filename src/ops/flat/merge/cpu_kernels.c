// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/flat/merge/merge.h"

extern const tr_kernel tr__merge_kernel;
extern const tr_kernel tr__pack_kernel;

const tr_cpu_kernels tr__cpu_kernels_merge[] = {
    {.op = &tr__op_merge, .f32 = {&tr__merge_kernel}},
    {.op = &tr__op_pack, .f32 = {&tr__pack_kernel}},
    {.op = NULL},
};
