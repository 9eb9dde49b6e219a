#include "backend/cpu/gemm.h"

#include "backend/cpu/isa.h"

extern const tr_gemm_kernel TR_ISA_KERNELS(tr__gemm);

static const tr_gemm_kernel *const kernels[TR_ISA_COUNT] = TR_ISA_TABLE(&tr__gemm);

const tr_gemm_kernel *tr__gemm_kernel(const tr_matmul_desc *desc) {
    bool f32 = desc->type == TR_F32 || desc->type == TR_NONE;
    return f32 ? kernels[tr__cpu_isa()] : NULL;
}
