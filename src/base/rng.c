#include "base/rng.h"

#include <math.h>

static void draw(uint64_t block, uint64_t seed, uint64_t stream, uint32_t out[4]) {
    uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)stream,
                           (uint32_t)(stream >> 32)};
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    tr__philox(counter, key, TR_PHILOX_ROUNDS, out);
}

// (0, 1): 24 bits and a half, so that the logarithm below is finite.
static float unit_float(uint32_t bits) {
    return ((float)(bits >> 8) + 0.5f) * 0x1p-24f;
}

// Box and Muller (1958): two uniforms make two normals.
static void normal_block(const uint32_t bits[4], float out[4]) {
    for (int i = 0; i < 4; i += 2) {
        float radius = sqrtf(-2.0f * logf(unit_float(bits[i])));
        float angle = 6.28318530717958648f * unit_float(bits[i + 1]);
        out[i] = radius * cosf(angle);
        out[i + 1] = radius * sinf(angle);
    }
}

static void uniform_block(const uint32_t bits[4], float out[4]) {
    for (int i = 0; i < 4; i++) {
        out[i] = unit_float(bits[i]);
    }
}

// dst[i] = shift + scale * (element first + i of the stream).
static void fill(float *dst, int64_t first, int64_t count, float shift, float scale,
                 uint64_t seed, uint64_t stream,
                 void (*block)(const uint32_t bits[4], float out[4])) {
    int64_t end = first + count;
#pragma omp parallel for schedule(static)
    for (int64_t b = first / 4; b < (end + 3) / 4; b++) {
        uint32_t bits[4];
        float value[4];
        draw((uint64_t)b, seed, stream, bits);
        block(bits, value);
        for (int i = 0; i < 4; i++) {
            int64_t element = 4 * b + i;
            if (element >= first && element < end) {
                dst[element - first] = shift + scale * value[i];
            }
        }
    }
}

void tr__fill_normal(float *dst, int64_t first, int64_t count, float mean,
                     float deviation, uint64_t seed, uint64_t stream) {
    fill(dst, first, count, mean, deviation, seed, stream, normal_block);
}

void tr__fill_uniform(float *dst, int64_t first, int64_t count, float low, float high,
                      uint64_t seed, uint64_t stream) {
    fill(dst, first, count, low, high - low, seed, stream, uniform_block);
}

uint64_t tr__draw_below(uint64_t bound, uint64_t index, uint64_t seed,
                        uint64_t stream) {
    uint32_t bits[4];
    draw(index, seed, stream, bits);
    uint64_t value = (uint64_t)bits[0] << 32 | bits[1];
    return (uint64_t)(((unsigned __int128)value * bound) >> 64);
}
