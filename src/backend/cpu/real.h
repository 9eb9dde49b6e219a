// The type of the tensors that a kernel file works on: a file that includes this is
// compiled once more for each 16-bit format (cmake/kernels.cmake), with TR_REAL_BF16 or
// TR_REAL_F16 defined. What is loaded becomes f32, all arithmetic is f32, and what is
// stored is rounded once. Where tr_real is float, nothing is converted.
#ifndef TR_BACKEND_CPU_REAL_H
#define TR_BACKEND_CPU_REAL_H

#include "backend/cpu/simd_half.h"
#include "base/half.h"

#include <tranche/types.h>

#if defined(TR_REAL_BF16) || defined(TR_REAL_F16)
#define TR_REAL_IS_HALF 1
typedef struct tr_real {
    uint16_t bits;
} tr_real;
#else
#define TR_REAL_IS_HALF 0
typedef float tr_real;
#endif

#if defined(TR_REAL_BF16)
#define TR_REAL TR_BF16
static inline tr_vf tr_v_load_r(const tr_real *p) {
    return tr_v_of_bf16(tr_v_load_h(p));
}

static inline void tr_v_store_r(tr_real *p, tr_vf v) {
    tr_v_store_h(p, tr_v_to_bf16(v));
}

static inline float tr_r_get(tr_real x) {
    return tr__bf16_to_f32(x.bits);
}

static inline tr_real tr_r_of(float x) {
    return (tr_real){tr__bf16_of_f32(x)};
}
#elif defined(TR_REAL_F16)
#define TR_REAL TR_F16
static inline tr_vf tr_v_load_r(const tr_real *p) {
    return tr_v_of_f16(tr_v_load_h(p));
}

static inline void tr_v_store_r(tr_real *p, tr_vf v) {
    tr_v_store_h(p, tr_v_to_f16(v));
}

static inline float tr_r_get(tr_real x) {
    return tr__f16_to_f32(x.bits);
}

static inline tr_real tr_r_of(float x) {
    return (tr_real){tr__f16_of_f32(x)};
}
#else
#define TR_REAL TR_F32
static inline tr_vf tr_v_load_r(const tr_real *p) {
    return tr_v_load(p);
}

static inline void tr_v_store_r(tr_real *p, tr_vf v) {
    tr_v_store(p, v);
}

static inline float tr_r_get(tr_real x) {
    return x;
}

static inline tr_real tr_r_of(float x) {
    return x;
}
#endif

// The first `count` (< TR_VW) elements, the others `fill`.
static inline tr_vf tr_v_load_part_r(const tr_real *p, int count, float fill) {
    float part[TR_VW];
    for (int i = 0; i < TR_VW; i++) {
        part[i] = i < count ? tr_r_get(p[i]) : fill;
    }
    return tr_v_load(part);
}

static inline void tr_v_store_part_r(tr_real *p, tr_vf v, int count) {
    float part[TR_VW];
    tr_v_store(part, v);
    for (int i = 0; i < count; i++) {
        tr_real x = tr_r_of(part[i]);
        memcpy(p + i, &x, sizeof x); // may lie on top of f32 that has been read
    }
}

#endif
