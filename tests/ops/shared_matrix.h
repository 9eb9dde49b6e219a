// A matrix that ranks share, updated as a whole (ops/flat/orthogonal).
#ifndef TESTS_OPS_SHARED_MATRIX_H
#define TESTS_OPS_SHARED_MATRIX_H

#include <tranche/extend/op.h>

// By a kernel of tr__op_orthogonal on this target: ranks that have columns, or rows, of
// unequal number come to the very bits of one that has all.
void test_shared_matrix(const tr_kernel *kernel, tr_target target);

#endif
