// The slope of a function along one of its variables, by a central difference.
#ifndef TR_BASE_SLOPE_H
#define TR_BASE_SLOPE_H

#include <stdint.h>

typedef struct tr_slope_function {
    void *of;
    double (*value)(void *of);
    // Variable i, in the type that it has: what is put may be rounded.
    double (*get)(void *of, int64_t i);
    void (*put)(void *of, int64_t i, double x);
} tr_slope_function;

// The variable is then as before. For values in f32 of size 1: exact in f32, and the
// error of the quotient, step^2 / 6 of the third derivative, is near that of the
// rounding of the values, 2^-24 / step.
#define TR_SLOPE_STEP 0x1p-7

static inline double tr__slope(const tr_slope_function *f, int64_t i) {
    double x = f->get(f->of, i);
    f->put(f->of, i, x + TR_SLOPE_STEP);
    double up = f->get(f->of, i), above = f->value(f->of);
    f->put(f->of, i, x - TR_SLOPE_STEP);
    double down = f->get(f->of, i), below = f->value(f->of);
    f->put(f->of, i, x);
    return (above - below) / (up - down);
}

#endif
