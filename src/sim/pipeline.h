// The walk of a plan, and of those of the other stages of its pipeline.
#ifndef TR_SIM_PIPELINE_H
#define TR_SIM_PIPELINE_H

#include "sim/simulate.h"
#include "sim/stages.h"

typedef struct tr_pipeline {
    size_t count, own;         // stages; the plan's
    tr_tape *tapes;            // [count]
    tr_sim_walk *walks;        // [count] over
    tr_stage_figures *figures; // [count] without times
    tr_model_flops literature; // of all of them
    bool stopped;              // by the one who watches
} tr_pipeline;

// Walks all stages. `all_spans`: spans of all are kept, else those of the plan's own
// alone. The caller clears *out, also after an error. TR_USAGE: the machine lacks what
// a stage uses. TR_INTERNAL: stages wait for each other for ever. TR_MEMORY. watch: may
// be NULL; where it stops, nothing is walked.
tr_status tr__pipeline_walk(const tr_plan *plan, const tr_machine *machine,
                            bool all_spans, const tr_stage_watch *watch,
                            tr_pipeline *out, tr_error *err);
void tr__pipeline_clear(tr_pipeline *pipeline);

#endif
