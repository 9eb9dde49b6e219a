// The two phases of an update that takes matrices as wholes (Muon): first the direction
// of each element, then the update by what is orthogonal of each matrix's direction.
//
//     direction    in[0]   f32, bf16, f16 or i64 [n]   sums of gradients
//                  out[0]  f32 [n]                     the direction
//                  out[2..] f32 [n]                    the optimizer's states; read,
//                  too
//     orthogonal   in[0]   f32 [all]                   the directions of the flat
//     buffer
//                  out[0]  f32 [n]                     parameters; read, too
//                  out[1]  bf16 or f16 [n], left out: none: the parameters, rounded
//
// Where ranks of the tensor axis share the matrices, in[0] of `orthogonal` has what all
// of them have of the flat buffer, one rank's elements behind the other's; the whole
// matrix is put together from that (tr_update_range.parts).
//
// [n] are elements [first, first + n) of a flat buffer, as in ops/update. A rank makes
// each matrix orthogonal of which it updates elements.
#ifndef TR_OPS_FLAT_ORTHOGONAL_ORTHOGONAL_H
#define TR_OPS_FLAT_ORTHOGONAL_ORTHOGONAL_H

#include "ops/flat/update/update.h"

// Without padding, as tr_update_attr is. Behind that: the matrix of the launch that
// needs the most working memory, and the operations for all of its matrices.
typedef struct tr_orthogonal_attr {
    tr_update_attr update;
    int64_t rows, columns;
    double flops;
    int64_t shared; // 1: ranks share the matrices, which are put together first
} tr_orthogonal_attr;

// Products of an iteration on a matrix, in operations.
static inline double tr__orthogonal_flops(int64_t rows, int64_t columns) {
    double least = (double)(rows < columns ? rows : columns);
    double most = (double)(rows < columns ? columns : rows);
    return 4 * least * least * most + 2 * least * least * least;
}

extern const tr_op tr__op_direction, tr__op_orthogonal;

#endif
