#include "backend/cpu/isa.h"
#include "backend/cpu/parallel.h"
#include "ops/flat/gradient_squares/cpu_squares.h"

#include <string.h>

void TR_ISA_NAME(tr__squares)(const float *x, int64_t count, int threads,
                              double *partials);

// Element i of a block is added to lane i % LANES, then the lanes are added by halves:
// the same order, and because the square of an f32 is exact in f64 the same bits, for
// every instruction set.
enum { LANES = 32 };

// x: [TR_NORM_BLOCK]
static double block_sum(const float *x) {
    double lane[LANES] = {0};
    for (int i = 0; i < TR_NORM_BLOCK; i += LANES) {
        for (int j = 0; j < LANES; j++) {
            double value = x[i + j];
            lane[j] += value * value;
        }
    }
    for (int half = LANES / 2; half > 0; half /= 2) {
        for (int j = 0; j < half; j++) {
            lane[j] += lane[j + half];
        }
    }
    return lane[0];
}

// The last block, fewer than TR_NORM_BLOCK elements: zeros add nothing.
static double rest_sum(const float *x, int64_t count) {
    float block[TR_NORM_BLOCK] = {0};
    memcpy(block, x, (size_t)count * sizeof *x);
    return block_sum(block);
}

void TR_ISA_NAME(tr__squares)(const float *x, int64_t count, int threads,
                              double *partials) {
    int64_t blocks = (count + TR_NORM_BLOCK - 1) / TR_NORM_BLOCK;
    threads = tr__threads_for(count, 1, threads);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t b = 0; b < blocks; b++) {
        int64_t first = b * TR_NORM_BLOCK, left = count - first;
        partials[b] =
            left < TR_NORM_BLOCK ? rest_sum(x + first, left) : block_sum(x + first);
    }
}
