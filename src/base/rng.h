// Counter-based random numbers: Philox 4x32 (Salmon, Moraes, Dror, Shaw: "Parallel
// random numbers: as easy as 1, 2, 3", SC 2011), 7 rounds, the fewest its authors found
// to pass BigCrush. A draw is a function of its counter and key, so it does not depend
// on who draws it, or when.
#ifndef TR_BASE_RNG_H
#define TR_BASE_RNG_H

#include "base/device.h"

#include <stdint.h>

enum { TR_PHILOX_ROUNDS = 7 };

#define TR_PHILOX_M0 0xD2511F53u
#define TR_PHILOX_M1 0xCD9E8D57u
#define TR_PHILOX_W0 0x9E3779B9u
#define TR_PHILOX_W1 0xBB67AE85u

// counter, out: [4]; key: [2].
TR_DEVICE static inline void tr__philox(const uint32_t *counter, const uint32_t *key,
                                        int rounds, uint32_t *out) {
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int r = 0; r < rounds; r++) {
        uint64_t p0 = (uint64_t)TR_PHILOX_M0 * c0;
        uint64_t p1 = (uint64_t)TR_PHILOX_M1 * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += TR_PHILOX_W0;
        k1 += TR_PHILOX_W1;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

// Element i of the stream (seed, stream) is a function of (seed, stream, i) alone, so a
// shard draws its own part. dst: [count] f32, elements first .. first + count - 1.
// Threaded with OpenMP; the bits do not depend on the number of threads.
void tr__fill_normal(float *dst, int64_t first, int64_t count, float mean,
                     float deviation, uint64_t seed, uint64_t stream);
void tr__fill_uniform(float *dst, int64_t first, int64_t count, float low, float high,
                      uint64_t seed, uint64_t stream);
// Uniform integers in [0, bound), bound > 0, by multiplication (bias < bound / 2^64).
uint64_t tr__draw_below(uint64_t bound, uint64_t index, uint64_t seed, uint64_t stream);

#endif
