// Inside of a simulation.
#ifndef TR_SIM_SIMULATE_H
#define TR_SIM_SIMULATE_H

#include "plan/print/trace.h"
#include "sim/cost.h"

struct tr_simulated {
    const tr_plan *plan;
    const tr_machine *machine;
    tr_simulation result;
    // Of the plan's own rank: at work, of the stream's time.
    double verb_seconds[TR_VERBS];
    int64_t verb_steps[TR_VERBS];
    tr_span *spans;
    size_t span_count, span_capacity;
    tr_stage_figures *stages; // [stage_count]
    size_t stage_count;
};

// Is told what each stage takes when its plan has been made, and says whether the
// others are made, too. The plan's own is the first, then the last of the pipeline.
typedef struct tr_stage_watch {
    bool (*goes_on)(void *user, const int64_t bytes[TR_SPACES]);
    void *user;
} tr_stage_watch;

// tr_simulate; NULL in *out where the watch has stopped it.
tr_status tr__simulate_watched(const tr_plan *plan, const tr_machine *machine,
                               const tr_stage_watch *watch, tr_simulated **out,
                               tr_error *err);
// Has the machine all that a step of the plan uses? TR_USAGE names the key that its
// file lacks.
tr_status tr__simulate_check(const tr_plan *plan, const tr_machine *machine,
                             tr_error *err);

#endif
