// Blocks of 32 elements with one scale, or with a scale and a least value. Each
// operation rounds to f32 as gguf-py's does: the build contracts none of them here.
#include "files/gguf/format.h"

#include "base/half.h"

#include <math.h>
#include <string.h>

enum { ELEMENTS = 32, HALF = ELEMENTS / 2 };

static float half_at(const unsigned char *bytes) {
    uint16_t half;
    memcpy(&half, bytes, sizeof half);
    return tr__f16_to_f32(half);
}

// Element i of the low four bits of 16 bytes, then of the high ones.
static int nibble(const unsigned char *bytes, int i) {
    return i < HALF ? bytes[i] & 15 : bytes[i - HALF] >> 4;
}

// The same with a fifth bit, from four bytes before.
static int five_bits(const unsigned char *bytes, int i) {
    int high = bytes[i / 8] >> (i % 8) & 1;
    return nibble(bytes + 4, i) | high << 4;
}

void tr__gguf_decode_q4_0(const unsigned char *block, float *values) {
    float scale = half_at(block);
    for (int i = 0; i < ELEMENTS; i++) {
        values[i] = scale * (float)(nibble(block + 2, i) - 8);
    }
}

void tr__gguf_decode_q4_1(const unsigned char *block, float *values) {
    float scale = half_at(block), least = half_at(block + 2);
    for (int i = 0; i < ELEMENTS; i++) {
        values[i] = scale * (float)nibble(block + 4, i) + least;
    }
}

void tr__gguf_decode_q5_0(const unsigned char *block, float *values) {
    float scale = half_at(block);
    for (int i = 0; i < ELEMENTS; i++) {
        values[i] = scale * (float)(five_bits(block + 2, i) - 16);
    }
}

void tr__gguf_decode_q5_1(const unsigned char *block, float *values) {
    float scale = half_at(block), least = half_at(block + 2);
    for (int i = 0; i < ELEMENTS; i++) {
        values[i] = scale * (float)five_bits(block + 4, i) + least;
    }
}

void tr__gguf_decode_q8_0(const unsigned char *block, float *values) {
    float scale = half_at(block);
    for (int i = 0; i < ELEMENTS; i++) {
        values[i] = (float)(int8_t)block[2 + i] * scale;
    }
}

// The largest size becomes 127. Quotients are rounded half away from zero.
bool tr__gguf_encode_q8_0(const float *values, unsigned char *block) {
    float most = 0;
    for (int i = 0; i < ELEMENTS; i++) {
        if (!isfinite(values[i])) {
            return false;
        }
        most = fmaxf(most, fabsf(values[i]));
    }
    float scale = most / 127;
    float inverse = scale == 0 ? 0 : 1 / scale;
    uint16_t half = tr__f16_of_f32(scale);
    if (!isfinite(inverse)) { // of a scale that is 0 as f16
        inverse = 0;
    }
    memcpy(block, &half, sizeof half);
    for (int i = 0; i < ELEMENTS; i++) {
        block[2 + i] = (unsigned char)(int8_t)roundf(values[i] * inverse);
    }
    return isfinite(tr__f16_to_f32(half));
}
