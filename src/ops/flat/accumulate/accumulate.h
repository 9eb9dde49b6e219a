// Adds a micro-batch's gradients to sums of another type than f32; or sums to others of
// their type.
//
//     in[0]   f32 [n]   the gradients; or sums, of the type of out[0]
//     out[0]  f32, bf16, f16 or i64 [n]   the sums: = or += (tr_launch.accumulate)
//     out[1]  f64 [2], of f32 in i64 alone: counts of launches that met a gradient
//     which was
//             too large, and one which was not finite; always added to, or left out
//
// In 16 bits the addition is done in f32 and rounded; what does not fit becomes
// infinite.
//
// Sums of i64 are in fixed point: integers add up to the same in any order, so a sum
// does not depend on how its terms were cut into micro-batches, waves and ranks (the
// idea of Demmel and Nguyen, "Parallel Reproducible Summation", IEEE Trans. Computers
// 64(7), 2015; one common exponent in place of their bins). A term x becomes the
// integer nearest to x * scale (ties to even), scale being a power of two. Sums of
// `terms` of them fit 64 bits as long as each is at most TR_FIXED_TOP / terms. A term
// that is larger, or not finite, is left out and counted: the sums are then of no use.
// The error of a sum is at most terms / (2 scale), in any order.
#ifndef TR_OPS_FLAT_ACCUMULATE_ACCUMULATE_H
#define TR_OPS_FLAT_ACCUMULATE_ACCUMULATE_H

#include <tranche/extend/op.h>

#define TR_FIXED_TOP 0x1p62

// out[1] of sums in fixed point.
enum {
    TR_ACCUMULATE_TOO_LARGE,  // some |x * scale| > limit: a smaller scale would do
    TR_ACCUMULATE_NOT_FINITE, // infinite, or not a number: no scale would
    TR_ACCUMULATE_COUNTS,
};

typedef struct tr_accumulate_attr {
    int32_t to; // tr_dtype of the sums
} tr_accumulate_attr;

extern const tr_op tr__op_accumulate;

// That of all its kernels.
void tr__accumulate_cost(const tr_op_desc *desc, tr_cost *cost);

// For ops whose first input is sums of gradients: f32, bf16, f16 or i64.
bool tr__sums_are_read(tr_dtype dtype);
// They take sums of another type than f32 so many elements at a time, and need so many
// bytes of workspace for them as f32 (tr_kernel.workspace).
enum { TR_CONVERT_ELEMENTS = 1 << 16 };
size_t tr__sums_workspace(const tr_op_desc *desc, const void *state);
#endif
