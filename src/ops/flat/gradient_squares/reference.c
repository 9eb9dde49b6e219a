#include "ops/flat/gradient_squares/gradient_squares.h"

void tr__squares_reference(const float *x, int64_t count, int threads,
                           double *partials);

void tr__squares_reference(const float *x, int64_t count, int threads,
                           double *partials) {
    (void)threads;
    for (int64_t i = 0; i < count; i++) {
        double *partial = partials + i / TR_NORM_BLOCK;
        if (i % TR_NORM_BLOCK == 0) {
            *partial = 0;
        }
        *partial += (double)x[i] * x[i];
    }
}

double tr__squares_sum(double so_far, const double *partials, int64_t blocks) {
    double sum = so_far;
    for (int64_t i = 0; i < blocks; i++) {
        sum += partials[i];
    }
    return sum;
}
