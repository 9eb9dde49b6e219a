#include "backend/cpu/isa.h"
#include "backend/cpu/parallel.h"
#include "ops/fixed/fixed.h"

#include <float.h>
#include <math.h>
#include <omp.h>

int TR_ISA_NAME(tr__fold_cpu)(const float *x, int64_t count, double scale, double limit,
                              bool add, int64_t *sums);
void TR_ISA_NAME(tr__unfold_cpu)(const int64_t *sums, int64_t count, double scale,
                                 float *x);

enum { PIECE = 1 << 14 }; // elements of one turn of a thread

// Products with a power of two are exact in f64. A term that does not fit is left out:
// its conversion would be undefined.
static int fold(const float *x, int64_t count, double scale, double limit, bool add,
                int64_t *sums) {
    int bad = 0;
    for (int64_t i = 0; i < count; i++) {
        double term = rint((double)x[i] * scale);
        int fits = fabs(term) <= limit;
        int64_t whole = (int64_t)(fits ? term : 0);
        sums[i] = add ? sums[i] + whole : whole;
        int finite = fabs(term) <= DBL_MAX;
        bad |= fits ? 0 : finite ? TR_FOLD_TOO_LARGE : TR_FOLD_NOT_FINITE;
    }
    return bad;
}

int TR_ISA_NAME(tr__fold_cpu)(const float *x, int64_t count, double scale, double limit,
                              bool add, int64_t *sums) {
    int64_t pieces = (count + PIECE - 1) / PIECE;
    int threads = tr__threads_for(count, 1, omp_get_max_threads());
    int bad = 0;
#pragma omp parallel for num_threads(threads) if (threads > 1) reduction(| : bad)
    for (int64_t p = 0; p < pieces; p++) {
        int64_t first = p * PIECE, left = count - first;
        int64_t now = left < PIECE ? left : PIECE;
        bad |= fold(x + first, now, scale, limit, add, sums + first);
    }
    return bad;
}

// A sum has up to 63 bits: the one rounding to f32 goes by f64, whose own rounding, to
// odd, cannot change which f32 is nearest (Boldo and Melquiond, IEEE Trans. Computers
// 57(4), 2008); the bits below f64's are folded into its last one.
static double to_odd(int64_t sum) {
    enum { DROPPED = 9 }; // 62 - 53
    int64_t low = sum & ((1 << DROPPED) - 1);
    int64_t high = sum - low;
    int64_t kept = low ? high | (INT64_C(1) << DROPPED) : high;
    bool exact = sum < (INT64_C(1) << 53) && sum > -(INT64_C(1) << 53);
    return (double)(exact ? sum : kept);
}

void TR_ISA_NAME(tr__unfold_cpu)(const int64_t *sums, int64_t count, double scale,
                                 float *x) {
    double back = 1 / scale;
    int threads = tr__threads_for(count, 1, omp_get_max_threads());
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < count; i++) {
        x[i] = (float)(to_odd(sums[i]) * back);
    }
}
