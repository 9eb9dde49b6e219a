// What a run file says of the spike guard (train/guard.h).
#ifndef TR_RUN_GUARD_RULES_H
#define TR_RUN_GUARD_RULES_H

#include <stdint.h>

typedef enum tr_guard_action {
    TR_GUARD_NONE,
    TR_GUARD_WARN,
    TR_GUARD_SKIP,
    TR_GUARD_ROLLBACK
} tr_guard_action;

typedef struct tr_guard_rules {
    tr_guard_action action;
    double threshold;      // standard deviations
    int64_t window;        // steps that the spread looks back on, about
    int64_t after;         // steps before the guard acts
    double rate_factor;    // a rollback multiplies the rate by this
    int64_t warmup_steps;  // updates after a rollback in which the rate comes back
    int64_t limit;         // spikes that the run survives, less
    int64_t forgive_steps; // one for each so many steps
} tr_guard_rules;

extern const char *const tr__guard_actions[]; // their names, NULL after the last
const char *tr__guard_action_name(tr_guard_action action); // "skip"

#endif
