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

// One list for each folder src/ops/<op> with a file cuda.c, which defines it as `const
// tr_cuda_kernels tr__cuda_kernels_<op>[]`, ended by a row without an op; the lists end
// with NULL. cmake/kernel_lists.cmake writes this array.
extern const tr_cuda_kernels *const tr__cuda_kernel_lists[];

// The kernel for the description; NULL: none supports it.
const tr_kernel *tr__cuda_kernel(const tr_op_desc *desc);

// ---- updates of optimizers

struct tr_optimizer; // ops/optimizer.h
struct tr_hyper;
struct tr_update;
struct tr_cuda_gradients; // ops/accumulate/cuda_gradients.h

// Launches the update of a range. grads: of the range; update->grad is NULL. squares:
// on the device, the sums of squares of the range's tensor and of its direction, which
// its rate follows; NULL: it follows none.
typedef void tr_cuda_update(const tr_launch *launch, const struct tr_hyper *hyper,
                            const struct tr_update *update,
                            const struct tr_cuda_gradients *grads,
                            const double *squares);
// The first phase (tr_adaptation) of a range that begins at element `first` of its flat
// buffer. parts: on the device, of its first part (ops/optimizer_measure.h)
typedef void tr_cuda_measure(const tr_launch *launch, const struct tr_hyper *hyper,
                             const struct tr_update *update,
                             const struct tr_cuda_gradients *grads, int64_t first,
                             double *parts);

typedef struct tr_cuda_optimizer {
    const struct tr_optimizer *optimizer;
    tr_cuda_update *update;
    tr_cuda_measure *measure; // NULL: elements know nothing of their tensor
} tr_cuda_optimizer;

// One for each folder src/ops/<optimizer> with a file cuda_optimizer.c, which defines
// it as tr__cuda_optimizer_<optimizer>; then NULL. cmake/kernel_lists.cmake writes this
// list.
extern const tr_cuda_optimizer *const tr__cuda_optimizers[];

// NULL: the backend cannot update by it.
const tr_cuda_optimizer *tr__cuda_optimizer_of(const struct tr_optimizer *optimizer);

#endif
