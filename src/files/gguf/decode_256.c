// Blocks of 256 elements in sub-blocks of 16 or 32, whose scales are small integers.
// Each operation rounds to f32 as gguf-py's does: the build contracts none of them
// here.
#include "files/gguf/format.h"

#include "base/half.h"

#include <string.h>

enum { ELEMENTS = 256 };

static float half_at(const unsigned char *bytes) {
    uint16_t half;
    memcpy(&half, bytes, sizeof half);
    return tr__f16_to_f32(half);
}

// Element i of 64 bytes with four elements of two bits each: those of 128 elements lie
// in 32 bytes, 32 of them in the lowest bits.
static int two_bits(const unsigned char *bytes, int i) {
    return bytes[i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2) & 3;
}

// Element i of 32 bytes, bit i / 32 of each.
static int one_bit(const unsigned char *bytes, int i) {
    return bytes[i % 32] >> (i / 32) & 1;
}

// Element i of 128 bytes: those of 64 elements lie in 32 bytes, 32 in the low bits.
static int nibble(const unsigned char *bytes, int i) {
    return bytes[i / 64 * 32 + i % 32] >> (i / 32 % 2 * 4) & 15;
}

// scales [16], two bits [64], scale of scales, scale of least values
void tr__gguf_decode_q2_k(const unsigned char *block, float *values) {
    const unsigned char *quants = block + 16;
    float scale = half_at(block + 80), least = half_at(block + 82);
    for (int i = 0; i < ELEMENTS; i++) {
        unsigned char both = block[i / 16];
        float d = scale * (float)(both & 15), m = least * (float)(both >> 4);
        values[i] = d * (float)two_bits(quants, i) - m;
    }
}

// The six bits of scale i of 16: the low four are in 8 bytes, the others in 4 more.
static int scale_of_16(const unsigned char *bytes, int i) {
    int low = i < 8 ? bytes[i] & 15 : bytes[i - 8] >> 4;
    int high = bytes[8 + i % 4] >> (i / 4 * 2) & 3;
    return (low | high << 4) - 32;
}

// third bits [32], two bits [64], scales [12], scale of scales. A third bit that is not
// set takes 4 away.
void tr__gguf_decode_q3_k(const unsigned char *block, float *values) {
    float scale = half_at(block + 108);
    for (int i = 0; i < ELEMENTS; i++) {
        float d = scale * (float)scale_of_16(block + 96, i / 16);
        int quant = two_bits(block + 32, i) - (one_bit(block, i) ? 0 : 4);
        values[i] = d * (float)quant;
    }
}

// The six bits of scale i of 8 in 12 bytes, and of least value i.
static int scale_of_8(const unsigned char *bytes, int i) {
    return i < 4 ? bytes[i] & 63 : (bytes[8 + i - 4] & 15) | (bytes[i - 4] >> 2 & 48);
}

static int least_of_8(const unsigned char *bytes, int i) {
    return i < 4 ? bytes[4 + i] & 63 : bytes[8 + i - 4] >> 4 | (bytes[i] >> 2 & 48);
}

// scale of scales, scale of least values, scales [12], four bits [128]
void tr__gguf_decode_q4_k(const unsigned char *block, float *values) {
    const unsigned char *scales = block + 4;
    float scale = half_at(block), least = half_at(block + 2);
    for (int i = 0; i < ELEMENTS; i++) {
        float d = scale * (float)scale_of_8(scales, i / 32);
        float m = least * (float)least_of_8(scales, i / 32);
        values[i] = d * (float)nibble(block + 16, i) - m;
    }
}

// The same with fifth bits [32] before the four.
void tr__gguf_decode_q5_k(const unsigned char *block, float *values) {
    const unsigned char *scales = block + 4;
    float scale = half_at(block), least = half_at(block + 2);
    for (int i = 0; i < ELEMENTS; i++) {
        float d = scale * (float)scale_of_8(scales, i / 32);
        float m = least * (float)least_of_8(scales, i / 32);
        int quant = nibble(block + 48, i) | one_bit(block + 16, i) << 4;
        values[i] = d * (float)quant - m;
    }
}

// four bits [128]: those of 128 elements lie in 64 bytes; two bits [64], scales [16],
// scale of scales
void tr__gguf_decode_q6_k(const unsigned char *block, float *values) {
    float scale = half_at(block + 208);
    for (int i = 0; i < ELEMENTS; i++) {
        float d = scale * (float)(int8_t)block[192 + i / 16];
        int low = block[i / 128 * 64 + i % 64] >> (i / 64 % 2 * 4) & 15;
        values[i] = d * (float)((low | two_bits(block + 128, i) << 4) - 32);
    }
}
