// The kernels of an instruction set that round to 8 bits, and the search for the
// largest absolute value by several threads.
#include "backend/cpu/kernels.h"
#include "backend/cpu/parallel.h"
#include "ops/nn/largest/largest.h"
#include "ops/nn/linear_fp8/cpu.h"

extern const tr_fp8_rounding TR_REAL_KERNELS(tr__fp8_rounding);

const tr_fp8_rounding *tr__fp8_rounding_of(tr_dtype real, const tr_target *target) {
    static const tr_fp8_rounding *const plain[TR_ISA_COUNT] =
        TR_ISA_TABLE(&tr__fp8_rounding);
    static const tr_fp8_rounding *const halves[TR_CPU_HALVES][TR_ISA_COUNT] =
        TR_HALF_TABLE(&tr__fp8_rounding);
    bool half = real == TR_BF16;
    int isa = target->level;
    while (isa > 0 && !(half ? halves[1][isa] : plain[isa])) {
        isa--;
    }
    return half ? halves[1][isa] : plain[isa];
}

size_t tr__fp8_search_bytes(int threads) {
    return (size_t)threads * TR_FP8_LINE;
}

uint32_t tr__fp8_search(const tr_tensor_desc *desc, const tr_target *target,
                        const void *x, int64_t count, void *found) {
    const tr_fp8_rounding *rounding = tr__fp8_rounding_of(desc->dtype, target);
    int64_t element = (int64_t)tr_dtype_bytes(desc->dtype);
    int threads = tr__threads_for(count, 1, target->workers);
    uint32_t largest = 0;
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        tr_range r = tr__range_part(count, TR_FP8_LINE, t, threads);
        *(uint32_t *)(void *)((char *)found + (size_t)t * TR_FP8_LINE) =
            rounding->largest((const char *)x + r.begin * element, r.end - r.begin);
    }
    for (int t = 0; t < threads; t++) {
        const void *its = (const char *)found + (size_t)t * TR_FP8_LINE;
        largest = tr__larger_bits(largest, *(const uint32_t *)its);
    }
    return largest;
}
