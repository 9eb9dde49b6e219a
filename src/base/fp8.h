// The 8-bit formats of floating point, E4M3 and E5M2 ("FP8 Formats for Deep Learning",
// Micikevicius et al., arXiv 2209.05433), and the scale of a tensor before it is
// rounded to one of them.
//
// |      | sign, exponent, fraction | bias | largest | least normal | least | infinity
// | | E4M3 | 1, 4, 3                  | 7    | 448     | 2^-6         | 2^-9  | no | |
// E5M2 | 1, 5, 2                  | 15   | 57,344  | 2^-14        | 2^-16 | yes      |
#ifndef TR_BASE_FP8_H
#define TR_BASE_FP8_H

#include "base/half.h"

typedef enum tr_fp8 { TR_FP8_E4M3, TR_FP8_E5M2 } tr_fp8;

enum {
    // Scales are at most 2^63. So a product of the inverses of two is not below 2^-126,
    // the least normal f32.
    TR_FP8_SCALE_MOST = 63,
    TR_FP8_NAN = 0x7F, // E4M3's only NaN, but for the sign; one of E5M2's
};

TR_DEVICE static inline int tr__fp8_fraction_bits(tr_fp8 format) {
    return format == TR_FP8_E4M3 ? 3 : 2;
}

// The exponent of the least normal number.
TR_DEVICE static inline int tr__fp8_least_exponent(tr_fp8 format) {
    return format == TR_FP8_E4M3 ? -6 : -14;
}

// Both largest numbers are 1.75 times a power of two, whose exponent this is.
TR_DEVICE static inline int tr__fp8_most_exponent(tr_fp8 format) {
    return format == TR_FP8_E4M3 ? 8 : 15;
}

TR_DEVICE static inline float tr__fp8_largest(tr_fp8 format) {
    return format == TR_FP8_E4M3 ? 448.0f : 57344.0f;
}

// 2^exponent, from -126 to 127
TR_DEVICE static inline float tr__fp8_power(int exponent) {
    return tr__f32_of_bits((uint32_t)(exponent + 127) << 23);
}

// Rounded to nearest, ties to even. What is larger than the largest number becomes that
// (saturation), infinity too; NaN stays. -0 stays.
TR_DEVICE static inline uint8_t tr__fp8_of_f32(tr_fp8 format, float x) {
    uint32_t sign = tr__f32_bits(x) >> 24 & 0x80;
    uint32_t size = tr__f32_bits(x) & 0x7FFFFFFF;
    int bits = tr__fp8_fraction_bits(format), least = tr__fp8_least_exponent(format);
    uint32_t largest = tr__f32_bits(tr__fp8_largest(format));
    if (size > 0x7F800000) {
        return (uint8_t)(sign | TR_FP8_NAN);
    }
    size = size < largest ? size : largest;
    int cut = 23 - bits;
    if (size < tr__f32_bits(tr__fp8_power(least))) {
        // Subnormal: a sum with this power of two rounds at the last bit.
        float power = tr__fp8_power(least + cut);
        float sum = tr__f32_of_bits(size) + power;
        return (uint8_t)(sign | (tr__f32_bits(sum) - tr__f32_bits(power)));
    }
    uint32_t half = (1u << (cut - 1)) - 1 + (size >> cut & 1);
    uint32_t code = (size + half) >> cut; // its exponent has f32's bias yet
    return (uint8_t)(sign | (code - ((uint32_t)(least + 126) << bits)));
}

TR_DEVICE static inline float tr__fp8_to_f32(tr_fp8 format, uint8_t code) {
    int bits = tr__fp8_fraction_bits(format), least = tr__fp8_least_exponent(format);
    uint32_t size = code & 0x7F, exponent = size >> bits;
    uint32_t fraction = size & ((1u << bits) - 1), sign = (uint32_t)(code & 0x80) << 24;
    float value = (float)fraction * tr__fp8_power(least - bits);
    if (exponent > 0) {
        value = tr__f32_of_bits((exponent + (uint32_t)(least + 126)) << 23 |
                                fraction << (23 - bits));
    }
    if (format == TR_FP8_E4M3 && size == TR_FP8_NAN) {
        value = tr__f32_of_bits(0x7FC00000);
    } else if (format == TR_FP8_E5M2 && exponent == 31) {
        value = tr__f32_of_bits(fraction ? 0x7FC00000 : 0x7F800000);
    }
    return tr__f32_of_bits(tr__f32_bits(value) | sign);
}

// ---- the scale of a tensor: the largest power of two by which its largest absolute
// value is multiplied without saturation, and at most 2^TR_FP8_SCALE_MOST. Numbers that
// stay in the normal range are rounded alike by every power of two.

// The exponent of the scale. largest: the bits of the largest absolute value of the
// tensor, as f32 (bits of absolute values have the order of the values, infinity and
// NaN last); not above those of infinity.
TR_DEVICE static inline int tr__fp8_scale_exponent(tr_fp8 format, uint32_t largest) {
    int exponent = (int)(largest >> 23) - 127;
    int scale = tr__fp8_most_exponent(format) - exponent;
    scale -= (largest & 0x7FFFFF) > 0x600000; // its fraction is above 1.75
    return scale < TR_FP8_SCALE_MOST ? scale : TR_FP8_SCALE_MOST;
}

// A scale and its inverse.
typedef struct tr_fp8_scale {
    float by, back;
} tr_fp8_scale;

// For a tensor with this largest absolute value, as above. If that is infinity or NaN,
// both are NaN, and so is all that is rounded by them: what is not finite stays so.
TR_DEVICE static inline tr_fp8_scale tr__fp8_scale_of(tr_fp8 format, uint32_t largest) {
    float nan = tr__f32_of_bits(0x7FC00000);
    tr_fp8_scale none = {nan, nan};
    if (largest >= 0x7F800000) {
        return none;
    }
    int exponent = tr__fp8_scale_exponent(format, largest);
    tr_fp8_scale scale = {tr__fp8_power(exponent), tr__fp8_power(-exponent)};
    return scale;
}

#endif
