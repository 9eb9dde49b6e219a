// The updates of optimizers by the CPU backend.
#ifndef TR_OPS_OPTIMIZERS_CPU_OPTIMIZER_H
#define TR_OPS_OPTIMIZERS_CPU_OPTIMIZER_H

#include "backend/cpu/isa.h"
#include "ops/optimizers/optimizer_measure.h"

// Updates a range by the threads of OpenMP. Bits do not depend on their number or on
// how ranges are cut.
typedef void tr_update_kernel(const tr_hyper *hyper, const tr_update *update);
// The first phase (tr_adaptation), by one thread.
typedef void tr_direct_kernel(const tr_hyper *hyper, const tr_update *update,
                              float *direction);

// By instruction set. NULL: the next lower one, then the optimizer's reference.
typedef struct tr_cpu_optimizer {
    const tr_optimizer *optimizer;
    tr_update_kernel *update[TR_ISA_COUNT];
    tr_direct_kernel *direct[TR_ISA_COUNT];
} tr_cpu_optimizer;

// One for each folder src/ops/optimizers/<optimizer> with a file cpu_optimizer.c, which
// defines it as tr__cpu_optimizer_<optimizer>; then NULL. cmake/kernel_lists.cmake
// writes this list.
extern const tr_cpu_optimizer *const tr__cpu_optimizers[];

// NULL: it has its reference alone.
const tr_cpu_optimizer *tr__cpu_optimizer_of(const tr_optimizer *optimizer);
// The best update up to the instruction set `level`; -1: the reference.
tr_update_kernel *tr__optimizer_choose(const tr_optimizer *optimizer, int level);
// The first phase likewise; NULL: there is none.
tr_direct_kernel *tr__optimizer_choose_direct(const tr_optimizer *optimizer, int level);

// Runs the first phase of an optimizer on a range that begins at element `first` of its
// flat buffer, and measures it: parts: [tr__measure_parts(first, update->count)]. Bits
// depend neither on the number of threads nor on how a range is cut at block
// boundaries.
void tr__optimizer_measure(const tr_optimizer *optimizer, const tr_target *target,
                           const tr_hyper *hyper, const tr_update *update,
                           int64_t first, tr_squares *parts);

#endif
