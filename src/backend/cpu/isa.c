#include "backend/cpu/isa.h"

#if defined(__x86_64__)
#include <cpuid.h>

// __builtin_cpu_supports of older clang does not know this one.
static bool has_f16c(void) {
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
#endif

tr_isa tr__cpu_isa(void) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
        return TR_ISA_AVX512;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c()) {
        return TR_ISA_AVX2;
    }
#endif
    return TR_ISA_GENERIC;
}

bool tr__cpu_has_bf16(void) {
#if defined(__x86_64__)
    return tr__cpu_isa() == TR_ISA_AVX512 && __builtin_cpu_supports("avx512bf16");
#else
    return false;
#endif
}

const char *tr__isa_name(tr_isa isa) {
    static const char *const names[] = {"generic", "avx2", "avx512"};
    return (unsigned)isa < TR_ISA_COUNT ? names[isa] : "unknown";
}
