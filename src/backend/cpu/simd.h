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

static inline tr_vf tr_v_max(tr_vf a, tr_vf b) {
    return tr_v_select(a > b, a, b);
}

static inline tr_vf tr_v_min(tr_vf a, tr_vf b) {
    return tr_v_select(a < b, a, b);
}

// Sum and maximum over the lanes, always in the same order (halves).
static inline float tr_v_sum(tr_vf v) {
    float part[TR_VW];
    tr_v_store(part, v);
    for (int half = TR_VW / 2; half > 0; half /= 2) {
        for (int i = 0; i < half; i++) {
            part[i] += part[i + half];
        }
    }
    return part[0];
}

static inline float tr_v_top(tr_vf v) {
    float part[TR_VW];
    tr_v_store(part, v);
    float top = part[0];
    for (int i = 1; i < TR_VW; i++) {
        top = part[i] > top ? part[i] : top;
    }
    return top;
}

// e^x, within 2 units in the last place for x in [-87, 88]; 0 below, infinity above,
// NaN stays. Cody and Waite reduction by ln 2 in two parts, then a polynomial of degree
// 6 in
// [-ln 2 / 2, ln 2 / 2] (coefficients 1/n!, whose error there is below 2^-26).
static inline tr_vf tr_v_exp(tr_vf x) {
    const tr_vf low = tr_v_set(-87.33654f), high = tr_v_set(88.37626f);
    tr_vi over = x > high, under = x < low;
    tr_vf y = tr_v_min(tr_v_max(x, low), high);
    tr_vf shifted = y * 1.44269504088896341f + 12582912.0f; // 1.5 * 2^23: rounds
    tr_vf n = shifted - 12582912.0f;
    tr_vf r = y - n * 0.693359375f;
    r = r + n * 2.12194440e-4f;
    tr_vf p = tr_v_set(1.0f / 720);
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    tr_vi exponent = ((tr_vi)shifted - 0x4B400000) << 23;
    tr_vf result = (tr_vf)((tr_vi)p + exponent);
    result = tr_v_select(over, tr_v_set(__builtin_inff()), result);
    result = tr_v_select(under, tr_v_set(0), result);
    return tr_v_select(x == x, result, x);
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
