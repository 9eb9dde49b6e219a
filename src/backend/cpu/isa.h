// Instruction sets of the CPU backend. Kernel files are compiled once for each, and the
// processor says at run time which it can run.
#ifndef TR_BACKEND_CPU_ISA_H
#define TR_BACKEND_CPU_ISA_H

#include <stdbool.h>

typedef enum tr_isa {
    TR_ISA_GENERIC, // what the compiler makes of plain C for the base architecture
    TR_ISA_AVX2,    // AVX2 and FMA
    TR_ISA_AVX512,  // AVX-512 F, BW, DQ, VL
    TR_ISA_COUNT
} tr_isa;

// The best one that this processor has and oneDNN may use. The environment variable
// DNNL_MAX_CPU_ISA (SSE41, AVX2, AVX512_CORE and others) holds oneDNN to less than the
// processor has, and so Tranche's own kernels.
tr_isa tr__cpu_isa(void);
// Does it multiply pairs of bf16 and add them up in f32 (AVX512-BF16)?
bool tr__cpu_has_bf16(void);
// And blocks of them at once (AMX)?
bool tr__cpu_has_tiles(void);
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

// The same of a kernel for both 16-bit formats (backend/cpu/real.h), as in
// tr_cpu_kernels.half.
#if defined(__x86_64__)
#define TR_HALF_TABLE(name)                                                            \
    {                                                                                  \
        {0}, {name##_generic_bf16, name##_avx2_bf16, name##_avx512_bf16}, {            \
            name##_generic_f16, name##_avx2_f16, name##_avx512_f16                     \
        }                                                                              \
    }
// And of one that multiplies pairs (backend/cpu/pair.h).
#define TR_PAIR_TABLE(name)                                                            \
    {                                                                                  \
        {0, 0, name##_avx512_pairs},                                                   \
            {name##_generic_bf16, name##_avx2_bf16, name##_avx512_bf16}, {             \
            name##_generic_f16, name##_avx2_f16, name##_avx512_f16                     \
        }                                                                              \
    }
// The same of kernels that are made of products, where a processor has those of bf16.
#define TR_PRODUCT_TABLE(name)                                                         \
    {                                                                                  \
        { 0, 0, name##_avx512_bf16 }                                                   \
    }
// Declares the kernels of such tables: for every instruction set in f32, and in both
// others.
#define TR_ISA_KERNELS(name) name##_generic, name##_avx2, name##_avx512
#define TR_REAL_KERNELS(name)                                                          \
    TR_ISA_KERNELS(name), name##_generic_bf16, name##_avx2_bf16, name##_avx512_bf16,   \
        name##_generic_f16, name##_avx2_f16, name##_avx512_f16
#define TR_PAIR_KERNELS(name) TR_REAL_KERNELS(name), name##_avx512_pairs
#else
#define TR_HALF_TABLE(name)                                                            \
    {                                                                                  \
        {0}, {name##_generic_bf16, 0, 0}, {                                            \
            name##_generic_f16, 0, 0                                                   \
        }                                                                              \
    }
#define TR_PAIR_TABLE(name) TR_HALF_TABLE(name)
#define TR_PRODUCT_TABLE(name)                                                         \
    {                                                                                  \
        { 0 }                                                                          \
    }
#define TR_ISA_KERNELS(name)  name##_generic
#define TR_REAL_KERNELS(name) name##_generic, name##_generic_bf16, name##_generic_f16
#define TR_PAIR_KERNELS(name) TR_REAL_KERNELS(name)
#endif

#endif
