#ifndef TR_OPS_FLAT_ORTHOGONAL_CPU_NEWTON_H
#define TR_OPS_FLAT_ORTHOGONAL_CPU_NEWTON_H

#include "ops/optimizers/optimizer.h"

#include <stddef.h>

// Working memory for a matrix, 64-byte aligned.
size_t tr__newton_workspace(int64_t rows, int64_t columns, int threads);
// What is nearly orthogonal of a matrix x: [rows, columns], by Newton-Schulz iterations
// (tr_orthogonal): it lies in `workspace`, as [rows, columns] or, where that is larger,
// transposed. Bits do not depend on the number of threads.
const float *tr__newton(const tr_orthogonal *how, const float *x, int64_t rows,
                        int64_t columns, int threads, void *workspace);

#endif
