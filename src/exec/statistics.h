// What the ranks tell each other of a step before its update. Each has numbers of
// its own (plan/flow/statistics.h). When all are there, every rank computes the same
// from them.
#ifndef TR_EXEC_STATISTICS_H
#define TR_EXEC_STATISTICS_H

#include "plan/flow/plan.h"

typedef struct tr_executor tr_executor;

// For the noise scale, of some of the tensors that count for it.
typedef struct tr_measured {
    double squares; // of their gradients over the whole batch
    // So many ranks' first micro-batches, of tied tensors their first waves, have
    // targets (0: not measured); the mean over these of their squares by the square of
    // their targets, and of 1 / targets.
    int64_t firsts;
    double first_squares, first_inverse;
} tr_measured;

// Of all ranks; each sum in one fixed order.
typedef struct tr_step_statistics {
    double sums[TR_SUMS];
    double norm_squares; // of all gradients, as they lie in the accumulators
    tr_measured untied, tied;
    bool save_asked, stopped, too_large, not_finite; // on any rank
    double first_bad; // the earliest of all ranks' TR_STATISTICS_FIRST_BAD; 0: none
    double least[TR_STATISTICS_FLAGS], mean[TR_STATISTICS_FLAGS],
        most[TR_STATISTICS_FLAGS];
} tr_step_statistics;

// The share of the last training step, up to the moment when all ranks had their
// gradients, in which ranks of a stage of the pipeline waited for others, in their
// mean.
double tr__executor_stage_wait(const tr_executor *executor, int64_t stage);

// Of the last training step.
void tr__executor_statistics(const tr_executor *executor, tr_step_statistics *all);

#endif
