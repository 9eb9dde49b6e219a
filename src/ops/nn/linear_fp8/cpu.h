// What the CPU's kernels ask of each instruction set: factors rounded to 8 bits, as
// numbers of their own type, f32 or bf16, in which all of E4M3 and E5M2 times a power
// of two is exact.
#ifndef TR_OPS_NN_LINEAR_FP8_CPU_H
#define TR_OPS_NN_LINEAR_FP8_CPU_H

#include "base/fp8.h"

#include <tranche/extend/target.h>
#include <tranche/types.h>

typedef struct tr_fp8_rounding {
    // The bits of the largest absolute value of x [count], as f32.
    uint32_t (*largest)(const void *x, int64_t count);
    // to: [count] = x: [count] times scale.by, rounded to nearest, ties to even, with
    // saturation, times scale.back. NaN stays.
    void (*round)(tr_fp8 format, tr_fp8_scale scale, const void *x, int64_t count,
                  void *to);
} tr_fp8_rounding;

// Threads share no cache line: neither of factors nor of the largest values that each
// of them found.
enum { TR_FP8_LINE = 64 };

// Of tensors in f32 or bf16, on a target of the CPU.
const tr_fp8_rounding *tr__fp8_rounding_of(tr_dtype real, const tr_target *target);
// The bits of the largest absolute value of x [count], of desc's type, by the target's
// threads. found: tr__fp8_search_bytes of these.
size_t tr__fp8_search_bytes(int threads);
uint32_t tr__fp8_search(const tr_tensor_desc *desc, const tr_target *target,
                        const void *x, int64_t count, void *found);

#endif
