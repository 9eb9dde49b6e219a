#ifndef TR_OPS_FLAT_GRADIENT_SQUARES_CPU_SQUARES_H
#define TR_OPS_FLAT_GRADIENT_SQUARES_CPU_SQUARES_H

#include "ops/flat/gradient_squares/gradient_squares.h"

// partials: [ceil(count / TR_NORM_BLOCK)] f64, the squares of each block of x [count].
// By up to `threads` threads.
typedef void (*tr_squares_function)(const float *x, int64_t count, int threads,
                                    double *partials);
tr_squares_function tr__squares_choose(int level); // of tr_target

#endif
