// Vectors of the 16-bit formats: loaded as f32, stored rounded to nearest, ties to
// even. The same bits as base/half.h, for every instruction set.
#ifndef TR_BACKEND_CPU_SIMD_HALF_H
#define TR_BACKEND_CPU_SIMD_HALF_H

#include "backend/cpu/simd.h"

typedef uint16_t tr_vh __attribute__((vector_size(TR_VW * 2)));

static inline tr_vh tr_v_load_h(const void *p) {
    tr_vh v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void tr_v_store_h(void *p, tr_vh v) {
    memcpy(p, &v, sizeof v);
}

static inline tr_vf tr_v_of_bf16(tr_vh v) {
    return (tr_vf)(__builtin_convertvector(v, tr_vu) << 16);
}

static inline tr_vh tr_v_to_bf16(tr_vf v) {
    tr_vu bits = (tr_vu)v, nan = (tr_vu)(v != v);
    tr_vu rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
    tr_vu quiet = bits >> 16 | 0x40;
    return __builtin_convertvector((nan & quiet) | (~nan & rounded), tr_vh);
}

#if defined(__AVX512F__)
static inline tr_vf tr_v_of_f16(tr_vh v) {
    return (tr_vf)_mm512_cvtph_ps((__m256i)v);
}

static inline tr_vh tr_v_to_f16(tr_vf v) {
    return (tr_vh)_mm512_cvtps_ph((__m512)v,
                                  _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
#elif defined(__F16C__)
static inline tr_vf tr_v_of_f16(tr_vh v) {
    return (tr_vf)_mm256_cvtph_ps((__m128i)v);
}

static inline tr_vh tr_v_to_f16(tr_vf v) {
    return (tr_vh)_mm256_cvtps_ph((__m256)v,
                                  _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
#else
static inline tr_vf tr_v_of_f16(tr_vh v) {
    tr_vu half = __builtin_convertvector(v, tr_vu);
    tr_vf size = (tr_vf)((half & 0x7FFF) << 13) * 0x1p112f;
    tr_vu special = (tr_vu)(size >= tr_v_set(65536)) & 0x7F800000;
    return (tr_vf)((tr_vu)size | special | (half & 0x8000) << 16);
}

static inline tr_vh tr_v_to_f16(tr_vf v) {
    tr_vu bits = (tr_vu)v, size = bits & 0x7FFFFFFF;
    tr_vu nan = (tr_vu)(v != v), high = (tr_vu)(size >= tr_v_set_u(0x477FF000));
    tr_vu low = (tr_vu)(size < tr_v_set_u(0x38800000));
    tr_vu normal = (size + 0xFFF + (size >> 13 & 1) - 0x38000000) >> 13;
    tr_vu small = (tr_vu)((tr_vf)(size & low) + 0.5f) - 0x3F000000;
    tr_vu half = (low & small) | (~low & normal);
    half = (high & 0x7C00) | (~high & half);
    half = (nan & (0x7E00 | (size >> 13 & 0x3FF))) | (~nan & half);
    return __builtin_convertvector(half | (bits >> 16 & 0x8000), tr_vh);
}
#endif

#endif
