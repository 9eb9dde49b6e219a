// Between f32 and the 16-bit formats, for runs of numbers. Rounded to nearest, ties to
// even; the same bits for every instruction set and number of threads.
#ifndef TR_BACKEND_CPU_HALF_H
#define TR_BACKEND_CPU_HALF_H

#include "backend/cpu/isa.h"
#include "base/half.h"

#include <tranche/types.h>

// to: [count] f32 = from: [count] of `dtype`, a 16-bit format, by up to `threads`
// OpenMP threads.
void tr__half_widen(tr_dtype dtype, const void *from, int64_t count, int threads,
                    float *to);
// to: [count] of `dtype` = from: [count] f32, rounded.
void tr__half_narrow(tr_dtype dtype, const float *from, int64_t count, int threads,
                     void *to);

// to: [count] of `dtype` += x: [count] f32, added in f32, and that rounded.
void tr__half_add(tr_dtype dtype, const float *x, int64_t count, int threads, void *to);

// What they are of: one for each instruction set, by one thread.
typedef struct tr_half_kernel {
    void (*widen_bf16)(const uint16_t *from, int64_t count, float *to);
    void (*widen_f16)(const uint16_t *from, int64_t count, float *to);
    void (*narrow_bf16)(const float *from, int64_t count, uint16_t *to);
    void (*narrow_f16)(const float *from, int64_t count, uint16_t *to);
    void (*add_bf16)(const float *x, int64_t count, uint16_t *to);
    void (*add_f16)(const float *x, int64_t count, uint16_t *to);
} tr_half_kernel;

// That of an instruction set; NULL: this build has none. For tests.
const tr_half_kernel *tr__half_kernel(tr_isa isa);

#endif
