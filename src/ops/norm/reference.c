#include "ops/norm/norm.h"

void tr__norm_reference(const float *x, int64_t count, double *partials) {
    for (int64_t i = 0; i < count; i++) {
        double *partial = partials + i / TR_NORM_BLOCK;
        if (i % TR_NORM_BLOCK == 0) {
            *partial = 0;
        }
        *partial += (double)x[i] * x[i];
    }
}
