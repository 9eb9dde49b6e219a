#include "backend/cpu/gemm.h"

#include "backend/cpu/isa.h"

extern const tr_gemm_kernel TR_ISA_KERNELS(tr__gemm);

static const tr_gemm_kernel *const kernels[TR_ISA_COUNT] = TR_ISA_TABLE(&tr__gemm);

#if defined(__x86_64__)
extern const tr_gemm_kernel tr__gemm_avx512_pairs;

// oneDNN's are faster where there are tiles. But its ReLU makes 0 of NaN. And tiles
// take pairs along k: where k is odd, oneDNN multiplies by 0 what its scratch memory
// holds behind the last element, which may be NaN.
static const tr_gemm_kernel *of_bf16(const tr_matmul_desc *desc) {
    bool odd = desc->k % 2 == 1;
    bool ours = tr__cpu_has_bf16() && (desc->relu || odd || !tr__cpu_has_tiles());
    return ours ? &tr__gemm_avx512_pairs : NULL;
}
#else
static const tr_gemm_kernel *of_bf16(const tr_matmul_desc *desc) {
    (void)desc;
    return NULL;
}
#endif

const tr_gemm_kernel *tr__gemm_kernel(const tr_matmul_desc *desc) {
    return desc->type == TR_BF16 ? of_bf16(desc) : kernels[tr__cpu_isa()];
}
