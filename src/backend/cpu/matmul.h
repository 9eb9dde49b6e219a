// Matrix products: C = A B and C += A B, prepared once and run often. Sums are f32,
// whatever the operands are.
//
// A product is described, prepared and run through this interface alone; what computes
// it shows nowhere else: this project's kernels (gemm.h), or oneDNN where it is faster
// (bf16 with AMX).
#ifndef TR_BACKEND_CPU_MATMUL_H
#define TR_BACKEND_CPU_MATMUL_H

#include <tranche/status.h>
#include <tranche/types.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// C[i, j] = act(sum over p of A[i, p] B[p, j] + bias[j]), or += with the same right
// side.
typedef struct tr_matmul_desc {
    int64_t m, n, k;      // A [m, k], B [k, n], C [m, n], bias [n]; each >= 1
    int64_t a_row, a_col; // elements from one row, one column of A to the next: one of
    int64_t b_row, b_col; // them is 1, so that (1, m) is an A stored transposed
    int64_t c_row;        // C's columns are adjacent; n where C is dense
    tr_dtype type;        // of A, B and bias: f32 (also TR_NONE) or bf16
    tr_dtype c_type;      // of C: f32 (also TR_NONE) or `type`
    bool bias, relu;
    bool fresh, accumulate; // which of = and += will be asked for
    int threads;            // OpenMP threads
} tr_matmul_desc;

typedef struct tr_matmul tr_matmul;

// Has this processor products of such A and B, faster than f32's?  f32 itself: always.
bool tr__matmul_has(tr_dtype type);

// Compiles what is needed (under a millisecond). TR_USAGE when a side is 2^31 or more,
// TR_INTERNAL when oneDNN refuses the description, TR_MEMORY. The caller owns `*out`.
tr_status tr__matmul_create(const tr_matmul_desc *desc, tr_matmul **out, tr_error *err);
void tr__matmul_destroy(tr_matmul *product); // NULL-safe

// Bytes of memory, 64-byte aligned, that a run must be given. 0 for NULL.
size_t tr__matmul_workspace(const tr_matmul *product);

// Runs the product with `threads` threads. a, b, c: as described; bias: [n] or NULL.
// One run at a time for one product. The result is a function of the operands, the
// description and the processor; with our own kernels an element is one of its row of
// A, its column of B and k alone, nothing is allocated, and nothing fails. With oneDNN
// TR_MEMORY (it has none for its lists) and TR_INTERNAL leave the result undefined.
tr_status tr__matmul_run(tr_matmul *product, bool accumulate, const void *a,
                         const void *b, const void *bias, void *c, void *workspace);

#endif
