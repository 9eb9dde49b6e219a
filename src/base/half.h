// The 16-bit formats, and one number to and from them, rounded to nearest, ties to
// even; a backend does it for many, with the same bits.
#ifndef TR_BASE_HALF_H
#define TR_BASE_HALF_H

#include "base/device.h"

#include <tranche/types.h>

#include <string.h>

static inline bool tr__dtype_is_half(tr_dtype dtype) {
    return dtype == TR_BF16 || dtype == TR_F16;
}

// May activations and weights have it?
static inline bool tr__dtype_is_real(tr_dtype dtype) {
    return dtype == TR_F32 || tr__dtype_is_half(dtype);
}

// That of the two as run files call it.
static inline const char *tr__half_name(tr_dtype dtype) {
    return dtype == TR_BF16 ? "bf16" : "fp16";
}

TR_DEVICE static inline uint32_t tr__f32_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

TR_DEVICE static inline float tr__f32_of_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// bfloat16: the upper half of an f32.
TR_DEVICE static inline float tr__bf16_to_f32(uint16_t half) {
    return tr__f32_of_bits((uint32_t)half << 16);
}

TR_DEVICE static inline uint16_t tr__bf16_of_f32(float x) {
    uint32_t bits = tr__f32_bits(x);
    if (x != x) {
        return (uint16_t)(bits >> 16 | 0x40); // NaN stays, and quiet
    }
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

// IEEE 754 binary16: 1 sign, 5 exponent (bias 15), 10 fraction. Shifted into an f32's
// place its exponent is 112 too small, which a product with 2^112 puts right, subnormal
// numbers included.
TR_DEVICE static inline float tr__f16_to_f32(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    float size = tr__f32_of_bits((uint32_t)(half & 0x7FFF) << 13) * 0x1p112f;
    uint32_t bits = tr__f32_bits(size);
    if (size >= 65536) { // infinity, NaN
        bits |= 0x7F800000;
    }
    return tr__f32_of_bits(bits | sign);
}

TR_DEVICE static inline uint16_t tr__f16_of_f32(float x) {
    uint32_t bits = tr__f32_bits(x), sign = bits >> 16 & 0x8000;
    uint32_t size = bits & 0x7FFFFFFF, half;
    if (size > 0x7F800000) {
        half = 0x7E00 | (size >> 13 & 0x3FF); // NaN stays, and quiet
    } else if (size >= 0x477FF000) {          // 65520 and above round to infinity
        half = 0x7C00;
    } else if (size < 0x38800000) { // subnormal: a sum with 1/2 rounds at its last bit
        half = tr__f32_bits(tr__f32_of_bits(size) + 0.5f) - 0x3F000000;
    } else {
        half = (size + 0xFFF + (size >> 13 & 1) - 0x38000000) >> 13;
    }
    return (uint16_t)(sign | half);
}

// Of the one that a type of 16 bits is.
static inline uint16_t tr__half_of_f32(tr_dtype half, float x) {
    return half == TR_BF16 ? tr__bf16_of_f32(x) : tr__f16_of_f32(x);
}

static inline float tr__half_to_f32(tr_dtype half, uint16_t bits) {
    return half == TR_BF16 ? tr__bf16_to_f32(bits) : tr__f16_to_f32(bits);
}

#endif
