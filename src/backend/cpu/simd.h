// Vectors of floats for kernel files, in GCC's vector extension: the same source
// becomes AVX-512, AVX2 or NEON by the flags it is compiled with.
#ifndef TR_BACKEND_CPU_SIMD_H
#define TR_BACKEND_CPU_SIMD_H

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define TR_VW 16
#elif defined(__AVX2__)
#define TR_VW 8
#else
#define TR_VW 4
#endif

typedef float tr_vf __attribute__((vector_size(TR_VW * 4)));
typedef int32_t tr_vi __attribute__((vector_size(TR_VW * 4)));
typedef uint32_t tr_vu __attribute__((vector_size(TR_VW * 4)));

static inline tr_vf tr_v_load(const float *p) {
    tr_vf v;
    memcpy(&v, p, sizeof v); // unaligned
    return v;
}

static inline void tr_v_store(float *p, tr_vf v) {
    memcpy(p, &v, sizeof v);
}

static inline tr_vf tr_v_set(float x) {
    return x - (tr_vf){0};
}

// The first `count` (< TR_VW) elements, the others `fill`.
static inline tr_vf tr_v_load_part(const float *p, int count, float fill) {
    float part[TR_VW];
    for (int i = 0; i < TR_VW; i++) {
        part[i] = i < count ? p[i] : fill;
    }
    return tr_v_load(part);
}

static inline void tr_v_store_part(float *p, tr_vf v, int count) {
    float part[TR_VW];
    tr_v_store(part, v);
    for (int i = 0; i < count; i++) {
        p[i] = part[i];
    }
}

static inline tr_vf tr_v_select(tr_vi mask, tr_vf yes, tr_vf no) {
    return (tr_vf)((mask & (tr_vi)yes) | (~mask & (tr_vi)no));
}

// a > b ? a : b and a < b ? a : b in each lane; where one is NaN, b. The compiler does
// not find the instructions by itself.
#if defined(__AVX512F__)
static inline tr_vf tr_v_max(tr_vf a, tr_vf b) {
    return (tr_vf)_mm512_max_ps((__m512)a, (__m512)b);
}

static inline tr_vf tr_v_min(tr_vf a, tr_vf b) {
    return (tr_vf)_mm512_min_ps((__m512)a, (__m512)b);
}
#elif defined(__AVX2__)
static inline tr_vf tr_v_max(tr_vf a, tr_vf b) {
    return (tr_vf)_mm256_max_ps((__m256)a, (__m256)b);
}

static inline tr_vf tr_v_min(tr_vf a, tr_vf b) {
    return (tr_vf)_mm256_min_ps((__m256)a, (__m256)b);
}
#else
static inline tr_vf tr_v_max(tr_vf a, tr_vf b) {
    return tr_v_select(a > b, a, b);
}

static inline tr_vf tr_v_min(tr_vf a, tr_vf b) {
    return tr_v_select(a < b, a, b);
}
#endif

// 0 where x is below 0; NaN stays.
static inline tr_vf tr_v_relu(tr_vf x) {
    return tr_v_max(tr_v_set(0), x);
}

// dy where a ReLU let its result y through, else 0. A NaN lets it through.
static inline tr_vf tr_v_behind_relu(tr_vf dy, tr_vf y) {
    return tr_v_select(y <= tr_v_set(0), tr_v_set(0), dy);
}

// Lane i of the result is lane i ^ bit.
static inline tr_vf tr_v_swap(tr_vf v, int bit) {
#if defined(__clang__) // its shuffles take constants alone
    tr_vf swapped = v;
    for (int i = 0; i < TR_VW; i++) {
        swapped[i] = v[i ^ bit];
    }
    return swapped;
#else
    tr_vi lane;
    for (int i = 0; i < TR_VW; i++) {
        lane[i] = i ^ bit;
    }
    return __builtin_shuffle(v, lane);
#endif
}

// Sum and maximum over the lanes, always in the same order (halves).
static inline float tr_v_sum(tr_vf v) {
#if TR_VW >= 16
    v += tr_v_swap(v, 8);
#endif
#if TR_VW >= 8
    v += tr_v_swap(v, 4);
#endif
    v += tr_v_swap(v, 2);
    v += tr_v_swap(v, 1);
    return v[0];
}

static inline float tr_v_top(tr_vf v) {
#if TR_VW >= 16
    v = tr_v_max(v, tr_v_swap(v, 8));
#endif
#if TR_VW >= 8
    v = tr_v_max(v, tr_v_swap(v, 4));
#endif
    v = tr_v_max(v, tr_v_swap(v, 2));
    v = tr_v_max(v, tr_v_swap(v, 1));
    return v[0];
}

// e^r for r in [-ln 2 / 2, ln 2 / 2], relative error 2^-28 before rounding: 1 + r + r^2
// q(r) with q fitted (by this project: reweighted least squares at Chebyshev points).
static inline tr_vf tr_v_exp_near_zero(tr_vf r) {
    tr_vf q = tr_v_set(1.381453990e-03f);
    q = q * r + 8.368745126e-03f;
    q = q * r + 4.166839079e-02f;
    q = q * r + 1.666652040e-01f;
    q = q * r + 4.999999343e-01f;
    q = q * r + 1.0f;
    return q * r + 1.0f;
}

// e^x, within 2 units in the last place for x in [-87, 88]; 0 below -87.34, infinity
// above 88.73 at the latest, NaN stays. Cody and Waite reduction by ln 2 in two parts.
#if defined(__AVX512F__)
static inline tr_vf tr_v_exp(tr_vf x) {
    __mmask16 seen = _mm512_cmp_ps_mask((__m512)x, _mm512_set1_ps(-87.33654f),
                                        _CMP_NLT_UQ); // NaN is seen
    tr_vf y = tr_v_min(tr_v_set(1000), x);
    tr_vf n = (tr_vf)_mm512_roundscale_ps((__m512)(y * 1.44269504088896341f),
                                          _MM_FROUND_TO_NEAREST_INT);
    tr_vf r = y - n * 0.693359375f;
    r = r + n * 2.12194440e-4f;
    tr_vf p = tr_v_exp_near_zero(r);
    return (tr_vf)_mm512_maskz_scalef_ps(seen, (__m512)p, (__m512)n);
}
#else
static inline tr_vf tr_v_exp(tr_vf x) {
    const tr_vf low = tr_v_set(-87.33654f), high = tr_v_set(88.37626f);
    tr_vf y = tr_v_min(high, tr_v_max(low, x));             // NaN stays
    tr_vf shifted = y * 1.44269504088896341f + 12582912.0f; // 1.5 * 2^23: rounds
    tr_vf n = shifted - 12582912.0f;
    tr_vf r = y - n * 0.693359375f;
    r = r + n * 2.12194440e-4f;
    tr_vf p = tr_v_exp_near_zero(r);
    tr_vi exponent = ((tr_vi)shifted - 0x4B400000) << 23;
    tr_vf result = (tr_vf)((tr_vi)p + exponent);
    result = tr_v_select(x > high, tr_v_set(__builtin_inff()), result);
    result = (tr_vf)((tr_vi)result & ~(tr_vi)(x < low));
    return tr_v_select(x == x, result, x);
}
#endif

// 2^x for x <= 127 (above, anything), within 2 units in the last place; below -126 it
// is 0 or next to it (at most 2^-126), NaN stays, 2^0 is 1. The polynomial is the
// minimax one in relative error on [-1/2, 1/2], 2^-28.9, with its first coefficient
// held at 1.
static inline tr_vf tr_v_exp2(tr_vf x) {
#if defined(__AVX512F__)
    tr_vf n = (tr_vf)_mm512_roundscale_ps((__m512)x, 0);
#else
    x = tr_v_max(tr_v_set(-126.0f), x);
    tr_vf shifted = x + 12582912.0f; // 1.5 * 2^23: rounds
    tr_vf n = shifted - 12582912.0f;
#endif
    tr_vf r = x - n;
    tr_vf p = r * 1.5353361886e-4f + 1.3398874422e-3f;
    p = p * r + 9.6184373578e-3f;
    p = p * r + 5.5503324711e-2f;
    p = p * r + 2.4022647914e-1f;
    p = p * r + 6.9314720286e-1f;
    p = p * r + 1.0f;
#if defined(__AVX512F__)
    return (tr_vf)_mm512_scalef_ps((__m512)p, (__m512)n);
#else
    return p * (tr_vf)(((tr_vu)shifted - 0x4B400000u + 127) << 23);
#endif
}

// ---- unsigned integers

static inline tr_vu tr_v_set_u(uint32_t x) {
    return x - (tr_vu){0};
}

// first, first + 1, ...
static inline tr_vu tr_v_count_u(uint32_t first) {
    tr_vu v;
    for (int i = 0; i < TR_VW; i++) {
        v[i] = first + (uint32_t)i;
    }
    return v;
}

// Products of 32 by 32 bits: the low halves; the high ones go to `*high`. The compiler
// does not find the instruction for it by itself: it multiplies every second lane.
#if defined(__AVX512F__)
static inline tr_vu tr_v_mul_wide(tr_vu a, tr_vu b, tr_vu *high) {
    __m512i even = _mm512_mul_epu32((__m512i)a, (__m512i)b);
    __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64((__m512i)a, 32),
                                   _mm512_srli_epi64((__m512i)b, 32));
    *high = (tr_vu)_mm512_mask_shuffle_epi32(odd, 0x5555, even, _MM_PERM_DDBB);
    return (tr_vu)_mm512_mask_shuffle_epi32(even, 0xAAAA, odd, _MM_PERM_CCAA);
}
#elif defined(__AVX2__)
static inline tr_vu tr_v_mul_wide(tr_vu a, tr_vu b, tr_vu *high) {
    __m256i even = _mm256_mul_epu32((__m256i)a, (__m256i)b);
    __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64((__m256i)a, 32),
                                   _mm256_srli_epi64((__m256i)b, 32));
    *high = (tr_vu)_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xAA);
    return (tr_vu)_mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xAA);
}
#else
static inline tr_vu tr_v_mul_wide(tr_vu a, tr_vu b, tr_vu *high) {
    for (int i = 0; i < TR_VW; i++) {
        (*high)[i] = (uint32_t)((uint64_t)a[i] * b[i] >> 32);
    }
    return a * b;
}
#endif

#endif
