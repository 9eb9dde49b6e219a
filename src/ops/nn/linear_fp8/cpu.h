// What the CPU's kernels ask of each instruction set: factors rounded to 8 bits, as
// numbers of their own type, f32 or bf16, in which all of E4M3 and E5M2 times a power
// of two is exact.
#ifndef TR_OPS_NN_LINEAR_FP8_CPU_H
#define TR_OPS_NN_LINEAR_FP8_CPU_H

#include "base/fp8.h"

typedef struct tr_fp8_rounding {
    // The bits of the largest absolute value of x [count], as f32.
    uint32_t (*largest)(const void *x, int64_t count);
    // to: [count] = x: [count] times scale.by, rounded to nearest, ties to even, with
    // saturation, times scale.back. NaN stays.
    void (*round)(tr_fp8 format, tr_fp8_scale scale, const void *x, int64_t count,
                  void *to);
} tr_fp8_rounding;

#endif
