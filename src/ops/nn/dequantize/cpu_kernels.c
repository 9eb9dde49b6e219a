// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/nn/dequantize/dequantize.h"

extern const tr_kernel TR_REAL_KERNELS(tr__dequantize_kernel);

const tr_cpu_kernels tr__cpu_kernels_dequantize[] = {
    {.op = &tr__op_dequantize,
     .f32 = TR_ISA_TABLE(&tr__dequantize_kernel),
     .half = TR_HALF_TABLE(&tr__dequantize_kernel)},
    {.op = NULL},
};
