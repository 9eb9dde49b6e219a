#include "ops/fixed/fixed.h"

#include <math.h>

int tr__fold_reference(const float *x, int64_t count, double scale, double limit,
                       bool add, int64_t *sums) {
    int bad = 0;
    for (int64_t i = 0; i < count; i++) {
        double term = rint((double)x[i] * scale);
        bool fits = fabs(term) <= limit;
        if (!add) {
            sums[i] = 0;
        }
        if (fits) {
            sums[i] += (int64_t)term;
        }
        if (!fits) {
            bad |= isfinite(x[i]) ? TR_FOLD_TOO_LARGE : TR_FOLD_NOT_FINITE;
        }
    }
    return bad;
}

// A long double holds 64 bits on x86 and 113 on Arm: the sum is exact in it.
void tr__unfold_reference(const int64_t *sums, int64_t count, double scale, float *x) {
    for (int64_t i = 0; i < count; i++) {
        x[i] = (float)((long double)sums[i] / (long double)scale);
    }
}
