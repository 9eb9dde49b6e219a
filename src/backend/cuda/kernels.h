// The kernels of the CUDA backend.
//
// An op's folder has cuda*.cu, the code of the device; cuda.h, which defines what each
// kernel is given; and cuda.c, which says what kernels support and need, and launches
// them (launch.h).
#ifndef TR_BACKEND_CUDA_KERNELS_H
#define TR_BACKEND_CUDA_KERNELS_H

#include "backend/cuda/launch.h"

// Levels of targets (tr_target): compute capabilities.
enum { TR_CUDA_SM_80, TR_CUDA_SM_89, TR_CUDA_SM_90 };

typedef struct tr_cuda_kernels {
    const tr_op *op;
    const tr_kernel *kernel; // of f32
} tr_cuda_kernels;

// One list for each folder src/ops/<kind>/<op> with a file cuda.c, which defines it as
// `const tr_cuda_kernels tr__cuda_kernels_<op>[]`, ended by a row without an op; the
// lists end with NULL. cmake/kernel_lists.cmake writes this array.
extern const tr_cuda_kernels *const tr__cuda_kernel_lists[];

// The kernel for the description; NULL: none supports it.
const tr_kernel *tr__cuda_kernel(const tr_op_desc *desc);

// ---- updates of optimizers

struct tr_optimizer; // ops/optimizers/optimizer.h
struct tr_hyper;
struct tr_update;
struct tr_cuda_gradients; // ops/flat/accumulate/cuda_gradients.h

struct tr_cuda_norms; // ops/flat/update/cuda_part.h

enum { TR_CUDA_OPTIMIZER_ARGS = 2560 };

// Writes what kernels of an optimizer are given, at most TR_CUDA_OPTIMIZER_ARGS
// bytes, and returns how many. grads: of the range that is updated; update->grad is
// NULL.
typedef size_t tr_cuda_optimizer_args(const struct tr_hyper *hyper,
                                      const struct tr_update *update,
                                      const struct tr_cuda_gradients *grads,
                                      const struct tr_cuda_norms *norms, void *args);

typedef struct tr_cuda_optimizer {
    const struct tr_optimizer *optimizer;
    tr_cuda_optimizer_args *args;
    const tr_cuda_function *update; // of a range, a thread for each element
    // The same where states are in few bits, blocks of threads for blocks of them.
    // NULL: states are in f32.
    const tr_cuda_function *packed;
    // The first phase (tr_adaptation) of a range, a block for each part. NULL: elements
    // know nothing of their tensor.
    const tr_cuda_function *measure;
    // Of an optimizer of matrices (tr_matrix_update): moves the state on; update->param
    // is where directions go. NULL: elements are updated by themselves.
    const tr_cuda_function *direct;
} tr_cuda_optimizer;

// One for each folder src/ops/optimizers/<optimizer> with a file cuda_optimizer.c,
// which defines it as tr__cuda_optimizer_<optimizer>; then NULL.
// cmake/kernel_lists.cmake writes this list.
extern const tr_cuda_optimizer *const tr__cuda_optimizers[];

// NULL: the backend cannot update by it.
const tr_cuda_optimizer *tr__cuda_optimizer_of(const struct tr_optimizer *optimizer);

#endif
