#include "backend/cpu/isa.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <oneapi/dnnl/dnnl.h>
#include <pthread.h>

// The same for the whole life of the process; to ask oneDNN takes half a microsecond.
static pthread_once_t asked = PTHREAD_ONCE_INIT;
static tr_isa best = TR_ISA_GENERIC;
static bool bf16, tiles;

#if defined(__x86_64__)
// What oneDNN may use is a set of bits: all that the processor has, or less where
// DNNL_MAX_CPU_ISA says so.
static bool dnnl_has(dnnl_cpu_isa_t isa) {
    return ((unsigned)dnnl_get_effective_cpu_isa() & (unsigned)isa) == (unsigned)isa;
}

// __builtin_cpu_supports of older clang does not know this one.
static bool has_f16c(void) {
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

static void ask(void) {
    if (dnnl_has(dnnl_cpu_isa_avx512_core) && __builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl")) {
        best = TR_ISA_AVX512;
        bf16 = dnnl_has(dnnl_cpu_isa_avx512_core_bf16) &&
               __builtin_cpu_supports("avx512bf16");
        tiles = bf16 && dnnl_has(dnnl_cpu_isa_avx512_core_amx);
    } else if (dnnl_has(dnnl_cpu_isa_avx2) && __builtin_cpu_supports("avx2") &&
               __builtin_cpu_supports("fma") && has_f16c()) {
        best = TR_ISA_AVX2;
    }
}
#else
static void ask(void) {
}
#endif

tr_isa tr__cpu_isa(void) {
    pthread_once(&asked, ask);
    return best;
}

bool tr__cpu_has_bf16(void) {
    pthread_once(&asked, ask);
    return bf16;
}

bool tr__cpu_has_tiles(void) {
    pthread_once(&asked, ask);
    return tiles;
}

const char *tr__isa_name(tr_isa isa) {
    static const char *const names[] = {"generic", "avx2", "avx512"};
    return (unsigned)isa < TR_ISA_COUNT ? names[isa] : "unknown";
}
