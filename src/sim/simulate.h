// Inside of a simulation.
#ifndef TR_SIM_SIMULATE_H
#define TR_SIM_SIMULATE_H

#include "plan/print/trace.h"
#include "sim/cost.h"

struct tr_simulated {
    const tr_plan *plan;
    const tr_machine *machine;
    tr_simulation result;
    double verb_seconds[TR_VERBS]; // at work: of the stream's time
    int64_t verb_steps[TR_VERBS];
    tr_span *spans;
    size_t span_count, span_capacity;
};

// Has the machine all that a step of the plan uses? TR_USAGE names the key that its
// file lacks.
tr_status tr__simulate_check(const tr_plan *plan, const tr_machine *machine,
                             tr_error *err);

#endif
