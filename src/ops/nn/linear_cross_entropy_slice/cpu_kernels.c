// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/nn/linear_cross_entropy_slice/linear_cross_entropy_slice.h"

extern const tr_kernel TR_REAL_KERNELS(tr__lce_slice_kernel);
extern const tr_kernel TR_REAL_KERNELS(tr__lce_slice_backward_kernel);

const tr_cpu_kernels tr__cpu_kernels_linear_cross_entropy_slice[] = {
    {.op = &tr__op_linear_cross_entropy_slice,
     .f32 = TR_ISA_TABLE(&tr__lce_slice_kernel),
     .half = TR_PRODUCT_TABLE(&tr__lce_slice_kernel)},
    {.op = &tr__op_linear_cross_entropy_slice_backward,
     .f32 = TR_ISA_TABLE(&tr__lce_slice_backward_kernel),
     .half = TR_PRODUCT_TABLE(&tr__lce_slice_backward_kernel)},
    {.op = NULL},
};
