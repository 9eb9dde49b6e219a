// Gradients summed in fixed point: integers add up to the same in any order, so a sum
// does not depend on how its terms were cut into micro-batches, waves and ranks (the
// idea of Demmel and Nguyen, "Parallel Reproducible Summation", IEEE Trans. Computers
// 64(7), 2015; one common exponent in place of their bins).
//
// A term x becomes the integer nearest to x * 2^exponent (ties to even). Sums of
// `terms` of them fit 64 bits as long as each is at most TR_FIXED_TOP / terms: what is
// larger, or not finite, is an overflow, and the sums are then of no use. The error of
// a sum is at most terms * 2^-(exponent + 1), in any order.
#ifndef TR_OPS_FIXED_H
#define TR_OPS_FIXED_H

#include <tranche/types.h>

#include "backend/cpu/isa.h"

#define TR_FIXED_TOP 0x1p62

// Bits of what a fold has met.
enum {
    TR_FOLD_TOO_LARGE = 1,  // some |x * scale| > limit: a coarser scale would do
    TR_FOLD_NOT_FINITE = 2, // infinite, or not a number: no scale would
};

// sums: [count], = or (add) += x: [count] f32. scale: a power of two. limit: at most
// TR_FIXED_TOP; what exceeds it is left out, and the sums are of no use. Returns bits
// as above; 0: all fits. Threaded.
typedef int (*tr_fold_function)(const float *x, int64_t count, double scale,
                                double limit, bool add, int64_t *sums);
tr_fold_function tr__fold_choose(tr_isa isa);
int tr__fold_reference(const float *x, int64_t count, double scale, double limit,
                       bool add, int64_t *sums);

// x: [count] = sums / scale, rounded once. Threaded.
typedef void (*tr_unfold_function)(const int64_t *sums, int64_t count, double scale,
                                   float *x);
tr_unfold_function tr__unfold_choose(tr_isa isa);
void tr__unfold_reference(const int64_t *sums, int64_t count, double scale, float *x);

#endif
