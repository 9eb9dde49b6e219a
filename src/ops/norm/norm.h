// Sum of squares in blocks of 1,024 elements, then in one fixed order: the same bits
// for every number of threads and every way to cut at block boundaries.
#ifndef TR_OPS_NORM_H
#define TR_OPS_NORM_H

#include <tranche/types.h>

#include "backend/cpu/isa.h"

enum { TR_NORM_BLOCK = 1024 };

// partials: [ceil(count / TR_NORM_BLOCK)] f64, the squares of each block of x [count]
// f32, summed in f64. Threaded. Not finite in, not finite out.
typedef void (*tr_norm_function)(const float *x, int64_t count, double *partials);
tr_norm_function tr__norm_choose(tr_isa isa);
void tr__norm_reference(const float *x, int64_t count, double *partials);
// so_far and the partials, added one after the other.
double tr__norm_sum(double so_far, const double *partials, int64_t blocks);

#endif
