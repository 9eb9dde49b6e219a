// The spike guard: is a step's loss or gradient norm far outside of what it has been
// lately, and what is done about it.
//
// The running spread is an exponential mean and variance, of the loss as it is and of
// the gradient norm's logarithm, because norms are spread by factors. A value counts as
// a spike when it lies more than `threshold` standard deviations above its mean. What
// enters the spread is at most that far out: one wild value does not widen it, a new
// level is learned within a few. A step that is not finite is a spike too, unless fp16
// is looking for its loss scale.
#ifndef TR_TRAIN_GUARD_H
#define TR_TRAIN_GUARD_H

#include "run/guard_rules.h"

#include <tranche/status.h>

#include <stdbool.h>
#include <stdint.h>

typedef struct tr_spread_of {
    double mean, variance;
} tr_spread_of;

// Part of a checkpoint.
typedef struct tr_guard {
    int64_t steps; // that the spreads have seen
    tr_spread_of loss, norm;
    double pressure; // spikes that are not yet forgiven
    double rate;     // what rollbacks have left of the rate
    int64_t warm;    // updates since the last rollback; -1: there was none
    int64_t target;  // step of the checkpoint that the last rollback went to; -1
    int64_t since;   // step at which it happened
    int64_t spikes;  // in all
} tr_guard;

typedef enum tr_spike {
    TR_SPIKE_NONE,
    TR_SPIKE_LOSS,
    TR_SPIKE_NORM,
    TR_SPIKE_NOT_FINITE
} tr_spike;

tr_guard tr__guard_begin(void);

// Looks at a step and takes it into the spreads. `finite`: loss and norm are;
// `searching`: fp16 makes steps that are not on its way to a loss scale. TR_NUMBERS:
// more spikes than the run is to survive.
tr_status tr__guard_look(const tr_guard_rules *rules, tr_guard *guard, double loss,
                         double norm, bool finite, bool searching, tr_spike *spike,
                         tr_error *err);

// What the rate of the next update is multiplied by.
double tr__guard_rate(const tr_guard_rules *rules, const tr_guard *guard);
// An update was applied.
void tr__guard_updated(tr_guard *guard);
// A rollback to the checkpoint of step `target`, at step `now`.
void tr__guard_rolled_back(const tr_guard_rules *rules, int64_t target, int64_t now,
                           tr_guard *guard);

const char *tr__spike_name(tr_spike spike); // "loss"

#endif
