// Instruction sets of the CPU backend. Kernel files are compiled once for each, and the
// processor says at run time which it can run.
#ifndef TR_BACKEND_CPU_ISA_H
#define TR_BACKEND_CPU_ISA_H

typedef enum tr_isa {
    TR_ISA_GENERIC, // what the compiler makes of plain C for the base architecture
    TR_ISA_AVX2,    // AVX2 and FMA
    TR_ISA_AVX512,  // AVX-512 F, BW, DQ, VL
    TR_ISA_COUNT
} tr_isa;

// The best one this processor has.
tr_isa tr__cpu_isa(void);
const char *tr__isa_name(tr_isa isa);

// In a kernel file, TR_ISA_NAME(tr__gelu_kernel) is tr__gelu_kernel_avx512 when the
// file is compiled for AVX-512: the build defines TR_ISA_SUFFIX.
#ifdef TR_ISA_SUFFIX
#define TR_ISA_JOIN2(name, suffix) name##_##suffix
#define TR_ISA_JOIN(name, suffix)  TR_ISA_JOIN2(name, suffix)
#define TR_ISA_NAME(name)          TR_ISA_JOIN(name, TR_ISA_SUFFIX)
#define TR_ISA_TEXT2(suffix)       #suffix
#define TR_ISA_TEXT1(suffix)       TR_ISA_TEXT2(suffix)
#define TR_ISA_TEXT                TR_ISA_TEXT1(TR_ISA_SUFFIX)
#endif

// { name_generic, name_avx2, name_avx512 }, NULL where this build has none. `name` may
// begin with '&'; the caller declares the three names.
#if defined(__x86_64__)
#define TR_ISA_TABLE(name)                                                             \
    { name##_generic, name##_avx2, name##_avx512 }
#else
#define TR_ISA_TABLE(name)                                                             \
    { name##_generic, 0, 0 }
#endif

#endif
