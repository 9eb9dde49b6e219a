// What tensor cores are fed with, for compute capability 8.0 and later: products of
// small matrices in the fragments of PTX ("mma.m16n8k16", "ldmatrix"), and copies into
// shared memory that go on beside the threads ("cp.async").
//
// Of a fragment, lane l has the elements of the rows l / 4 and l / 4 + 8 and of the
// columns 2 (l % 4) and the next one. c [16, 8] is {row, row + 8} x {column, next};
// a [16, 16] is the packed pairs (row, column), (row + 8, column), (row, column + 8),
// (row + 8, column + 8); b [16, 8] those of its transpose: (column, row) and
// (column + 8, row). All lanes of the warp call these functions together.
#ifndef TR_BACKEND_CUDA_MMA_H
#define TR_BACKEND_CUDA_MMA_H

#include "backend/cuda/real.cuh"

#ifdef __CUDACC__ // else the stand-in for CUDA has these functions

static __device__ inline uint32_t tr_cuda_shared_address(const void *p) {
    return (uint32_t)__cvta_generic_to_shared(p);
}

// The memory that a launch gives each block (tr_cuda_grid.shared).
static __device__ inline void *tr_cuda_shared() {
    extern __shared__ uint4 tr_cuda_dynamic[];
    return tr_cuda_dynamic;
}

static __device__ inline void tr_cuda_mma_bf16(float *c, const uint32_t *a,
                                               const uint32_t *b) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

static __device__ inline void tr_cuda_mma_f16(float *c, const uint32_t *a,
                                              const uint32_t *b) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Four matrices of 8 x 8 elements of 16 bits in shared memory. Lane l gives the address
// of row l % 8 of matrix l / 8, a multiple of 16 bytes, and gets in r[i] a pair of
// matrix i: of row lane / 4, or, transposed, of column lane / 4.
static __device__ inline void tr_cuda_load_matrices(uint32_t *r, const void *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(tr_cuda_shared_address(row))
                 : "memory");
}

static __device__ inline void tr_cuda_load_transposed(uint32_t *r, const void *row) {
    asm volatile(
        "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
        : "r"(tr_cuda_shared_address(row))
        : "memory");
}

// Begins to copy 16, or 4, bytes into shared memory; zeros where nothing is `there`.
static __device__ inline void tr_cuda_copy16(void *to, const void *from, bool there) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"(tr_cuda_shared_address(to)), "l"(from), "r"(there ? 16 : 0)
                 : "memory");
}

static __device__ inline void tr_cuda_copy4(void *to, const void *from, bool there) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
                 :
                 : "r"(tr_cuda_shared_address(to)), "l"(from), "r"(there ? 4 : 0)
                 : "memory");
}

// Makes a group of the copies that this thread has begun since the last one.
static __device__ inline void tr_cuda_copy_group() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Until this thread's groups are done, but for the newest so many.
template <int LEFT> static __device__ inline void tr_cuda_copy_wait() {
    asm volatile("cp.async.wait_group %0;" : : "n"(LEFT) : "memory");
}

#endif

// ---- by type

static __device__ inline void tr_cuda_mma(float *c, const uint32_t *a,
                                          const uint32_t *b, tr_cuda_bf16) {
    tr_cuda_mma_bf16(c, a, b);
}

static __device__ inline void tr_cuda_mma(float *c, const uint32_t *a,
                                          const uint32_t *b, tr_cuda_f16) {
    tr_cuda_mma_f16(c, a, b);
}

#endif
