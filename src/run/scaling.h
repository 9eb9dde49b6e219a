// How an optimizer's numbers follow the effective batch, k = T / B0 times the batch
// that they were found with:
//
//     none    they stay
//     linear  lr k        (Goyal et al. 2017, arXiv 1706.02677; with a warm-up)
//     sqrt    lr sqrt(k)  (Krizhevsky 2014, arXiv 1404.5997)
//     adam    lr sqrt(k), beta -> 1 - k (1 - beta) (Malladi et al. 2022, arXiv
//             2205.10287), and what the optimizer's own numbers ask for
//             (tr_optimizer.scale); for optimizers that have such a function
//
// The factor of lr multiplies what the schedule gives. Where betas change in the middle
// of a run, bias correction goes by the products of those that were (tr_engine.power).
#ifndef TR_RUN_SCALING_H
#define TR_RUN_SCALING_H

#include "ops/optimizers/optimizer.h"

#include <tranche/status.h>

typedef enum tr_scaling_rule {
    TR_SCALING_NONE,
    TR_SCALING_LINEAR,
    TR_SCALING_SQRT,
    TR_SCALING_ADAM
} tr_scaling_rule;

typedef struct tr_scaling {
    tr_scaling_rule rule;
    int64_t reference; // B0; > 0 unless the rule is none
} tr_scaling;

// What the rate is multiplied by at an effective batch of `batch`.
double tr__scaling_rate(const tr_scaling *scaling, int64_t batch);

// Changes what a schedule has given to what is right for the batch. said: NULL, or
// [TR_SCALED_TEXT]: see tr_optimizer.scale.
void tr__scaling_apply(const tr_scaling *scaling, const tr_optimizer *optimizer,
                       int64_t batch, tr_hyper *hyper, char *said);

// The largest batch at which betas that are at least `beta` stay above 0; INT64_MAX
// where the rule leaves them.
int64_t tr__scaling_largest(const tr_scaling *scaling, double beta);

// TR_USAGE: the batch is too large for the rule and betas of at least `beta`; the
// message names the largest k. `what` says whose batch it is ("train_batch_size").
tr_status tr__scaling_check(const tr_scaling *scaling, int64_t batch, double beta,
                            const char *what, tr_error *err);

extern const char *const tr__scaling_rules[]; // their names, NULL after the last
const char *tr__scaling_name(tr_scaling_rule rule);

#endif
