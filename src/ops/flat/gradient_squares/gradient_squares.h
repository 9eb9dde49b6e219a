// Squares of gradients, summed in blocks of 1,024 elements: the same bits for every
// number of threads, every instruction set and every cut at block boundaries.
//
//     gradient_squares   in[0]   f32, bf16, f16 or i64 [n]   sums of gradients
//                        out[0]  f64 [ceil(n / 1024)]        the squares of each block
//     sum_of_squares     in[0]   f32 [n]
//                        out[0]  f64 [1]   all blocks, one after the other; added to
//
// Squares are summed in f64. Sums in fixed point are divided by their scale first
// (ops/accumulate). Not finite in, not finite out.
#ifndef TR_OPS_FLAT_GRADIENT_SQUARES_GRADIENT_SQUARES_H
#define TR_OPS_FLAT_GRADIENT_SQUARES_GRADIENT_SQUARES_H

#include <tranche/extend/op.h>

enum { TR_NORM_BLOCK = 1024 };

extern const tr_op tr__op_gradient_squares, tr__op_sum_of_squares;

// so_far and the partials, added one after the other.
double tr__squares_sum(double so_far, const double *partials, int64_t blocks);

#endif
