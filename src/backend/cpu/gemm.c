#include "backend/cpu/gemm.h"

#include "backend/cpu/isa.h"

extern const tr_gemm_kernel TR_ISA_KERNELS(tr__gemm);

static const tr_gemm_kernel *const kernels[TR_ISA_COUNT] = TR_ISA_TABLE(&tr__gemm);

#if defined(__x86_64__)
extern const tr_gemm_kernel tr__gemm_avx512_pairs;

// oneDNN's are faster where there are tiles, but its ReLU makes 0 of NaN.
static const tr_gemm_kernel *of_bf16(bool relu) {
    bool ours = tr__cpu_has_bf16() && (relu || !tr__cpu_has_tiles());
    return ours ? &tr__gemm_avx512_pairs : NULL;
}
#else
static const tr_gemm_kernel *of_bf16(bool relu) {
    (void)relu;
    return NULL;
}
#endif

const tr_gemm_kernel *tr__gemm_kernel(const tr_matmul_desc *desc) {
    return desc->type == TR_BF16 ? of_bf16(desc->relu) : kernels[tr__cpu_isa()];
}
