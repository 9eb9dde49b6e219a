// Matrix products by this project's own kernels. All that a run touches is its operands
// and a workspace of a size that is known before: it allocates nothing.
//
// An element of C is the sum over blocks of a fixed number of steps, each block's sum
// being a chain of fused multiply-adds in the order of p. So its bits depend on its row
// of A, its column of B and k alone, and not on m, n, the orientations or the threads.
#ifndef TR_BACKEND_CPU_GEMM_H
#define TR_BACKEND_CPU_GEMM_H

#include "backend/cpu/matmul.h"

typedef struct tr_gemm_run {
    const tr_matmul_desc *desc;
    bool accumulate;
    const void *a, *b, *bias; // of desc->type; bias NULL where there is none
    void *c;                  // of desc->c_type
    void *workspace;          // 64-byte aligned
} tr_gemm_run;

typedef struct tr_gemm_kernel {
    size_t (*workspace)(const tr_matmul_desc *desc);
    void (*run)(const tr_gemm_run *run);
} tr_gemm_kernel;

// The kernel of a product on this processor; NULL: it has none.
const tr_gemm_kernel *tr__gemm_kernel(const tr_matmul_desc *desc);

#endif
