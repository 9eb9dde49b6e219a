#include "base/rng.h"

#include "base/checked.h"

#include <math.h>
#include <string.h>

static void draw(uint64_t block, uint64_t seed, uint64_t stream, uint32_t out[4]) {
    uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)stream,
                           (uint32_t)(stream >> 32)};
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    tr__philox(counter, key, TR_PHILOX_ROUNDS, out);
}

// Blocks of four words are drawn LANES at a time, word by word side by side, in loops
// that compilers turn into vector instructions. A group of elements always goes through
// the same loops whole, whatever part of it is asked for. This file is compiled without
// contraction to fused multiplications, so that every processor makes the same bits.
enum { LANES = 16, GROUP = 4 * LANES };

static void draw_group(uint64_t group, uint64_t seed, uint64_t stream,
                       uint32_t out[4][LANES]) {
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int l = 0; l < LANES; l++) {
        uint64_t block = group * LANES + (uint64_t)l;
        out[0][l] = (uint32_t)block;
        out[1][l] = (uint32_t)(block >> 32);
        out[2][l] = (uint32_t)stream;
        out[3][l] = (uint32_t)(stream >> 32);
    }
    for (int r = 0; r < TR_PHILOX_ROUNDS; r++) {
        for (int l = 0; l < LANES; l++) {
            uint64_t p0 = (uint64_t)TR_PHILOX_M0 * out[0][l];
            uint64_t p1 = (uint64_t)TR_PHILOX_M1 * out[2][l];
            out[0][l] = (uint32_t)(p1 >> 32) ^ out[1][l] ^ k0;
            out[1][l] = (uint32_t)p1;
            out[2][l] = (uint32_t)(p0 >> 32) ^ out[3][l] ^ k1;
            out[3][l] = (uint32_t)p0;
        }
        k0 += TR_PHILOX_W0;
        k1 += TR_PHILOX_W1;
    }
}

// The middle of one of 2^23 equal parts of (0, 1): never an end, so that the logarithm
// below is finite. The conversion is of a signed number, which has an instruction.
static inline float unit_float(uint32_t bits) {
    return ((float)(int32_t)(bits >> 9) + 0.5f) * 0x1p-23f;
}

// ln x for x in (0, 1): x = m 2^e with m in [sqrt(1/2), sqrt(2)), and
// ln m = 2 artanh(s) = 2 (s + s^3 / 3 + s^5 / 5 + ...), s = (m - 1) / (m + 1); the
// first term left out is below 2^-29 of the sum.
static void logarithms(const float x[LANES], float out[LANES]) {
    int32_t word[LANES], exponent[LANES];
    float m[LANES];
    memcpy(word, x, sizeof word);
    for (int l = 0; l < LANES; l++) {
        exponent[l] = (word[l] - 0x3F3504F3) >> 23; // sqrt(1/2) as an f32
        word[l] -= (int32_t)((uint32_t)exponent[l] << 23);
    }
    memcpy(m, word, sizeof m);
    for (int l = 0; l < LANES; l++) {
        float s = (m[l] - 1) / (m[l] + 1), t = s * s;
        float sum = t * (1.0f / 3 + t * (1.0f / 5 + t * (1.0f / 7 + t * (1.0f / 9))));
        out[l] = (float)exponent[l] * 0.693147181f + 2 * (s + s * sum);
    }
}

// cos and sin of 2 pi x for x in (0, 1): the nearest quarter turn is taken off, and the
// power series in the rest, within pi / 4, are cut where they are below 2^-28.
static void turns(const float x[LANES], float cosine[LANES], float sine[LANES]) {
    for (int l = 0; l < LANES; l++) {
        int32_t quarter = (int32_t)(4 * x[l] + 0.5f);
        float a = 6.28318531f * (x[l] - 0.25f * (float)quarter), t = a * a;
        float s = t * (-1.0f / 6 +
                       t * (1.0f / 120 + t * (-1.0f / 5040 + t * (1.0f / 362880))));
        float c = t * (1.0f / 24 +
                       t * (-1.0f / 720 + t * (1.0f / 40320 + t * (-1.0f / 3628800))));
        s = a + a * s;
        c = 1 - t * 0.5f + t * c;
        float first = quarter & 1 ? s : c, second = quarter & 1 ? c : s;
        cosine[l] = (quarter + 1) & 2 ? -first : first;
        sine[l] = quarter & 2 ? -second : second;
    }
}

// Box and Muller (1958): two uniforms make two normals.
static void normal_words(const uint32_t a[LANES], const uint32_t b[LANES],
                         float first[LANES], float second[LANES]) {
    float radius[LANES], turn[LANES];
    for (int l = 0; l < LANES; l++) {
        radius[l] = unit_float(a[l]);
        turn[l] = unit_float(b[l]);
    }
    logarithms(radius, radius);
    turns(turn, first, second);
    for (int l = 0; l < LANES; l++) {
        float r = sqrtf(-2.0f * radius[l]);
        first[l] *= r;
        second[l] *= r;
    }
}

static void normal_group(const uint32_t bits[4][LANES], float out[4][LANES]) {
    normal_words(bits[0], bits[1], out[0], out[1]);
    normal_words(bits[2], bits[3], out[2], out[3]);
}

static void uniform_group(const uint32_t bits[4][LANES], float out[4][LANES]) {
    for (int i = 0; i < 4; i++) {
        for (int l = 0; l < LANES; l++) {
            out[i][l] = unit_float(bits[i][l]);
        }
    }
}

typedef void (*group_function)(const uint32_t bits[4][LANES], float out[4][LANES]);

// dst: [GROUP], shift + scale * (elements of the group).
static void fill_group(float *dst, uint64_t group, float shift, float scale,
                       uint64_t seed, uint64_t stream, group_function make) {
    uint32_t bits[4][LANES];
    float value[4][LANES];
    draw_group(group, seed, stream, bits);
    make(bits, value);
    for (int l = 0; l < LANES; l++) {
        for (int i = 0; i < 4; i++) {
            dst[4 * l + i] = shift + scale * value[i][l];
        }
    }
}

// dst[i] = shift + scale * (element first + i of the stream).
static void fill(float *dst, int64_t first, int64_t count, float shift, float scale,
                 uint64_t seed, uint64_t stream, group_function make) {
    int64_t end = first + count;
#pragma omp parallel for schedule(static) if (count > 16384)
    for (int64_t g = first / GROUP; g < (end + GROUP - 1) / GROUP; g++) {
        int64_t begin = g * GROUP;
        if (begin >= first && begin + GROUP <= end) {
            fill_group(dst + (begin - first), (uint64_t)g, shift, scale, seed, stream,
                       make);
            continue;
        }
        float part[GROUP];
        fill_group(part, (uint64_t)g, shift, scale, seed, stream, make);
        int64_t from = tr__max_i64(begin, first), to = tr__min_i64(begin + GROUP, end);
        for (int64_t i = from; i < to; i++) {
            dst[i - first] = part[i - begin];
        }
    }
}

void tr__fill_normal(float *dst, int64_t first, int64_t count, float mean,
                     float deviation, uint64_t seed, uint64_t stream) {
    fill(dst, first, count, mean, deviation, seed, stream, normal_group);
}

void tr__fill_uniform(float *dst, int64_t first, int64_t count, float low, float high,
                      uint64_t seed, uint64_t stream) {
    fill(dst, first, count, low, high - low, seed, stream, uniform_group);
}

uint64_t tr__draw_below(uint64_t bound, uint64_t index, uint64_t seed,
                        uint64_t stream) {
    uint32_t bits[4];
    draw(index, seed, stream, bits);
    uint64_t value = (uint64_t)bits[0] << 32 | bits[1];
    return (uint64_t)(((unsigned __int128)value * bound) >> 64);
}
