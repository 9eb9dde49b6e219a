// Which parts of the model the stages of a pipeline run.
#ifndef TR_PLAN_FLOW_STAGES_H
#define TR_PLAN_FLOW_STAGES_H

#include <tranche/status.h>

#include <stdbool.h>
#include <stdint.h>

// A model's units in their order, cut into chunks ("virtual stages"): each stage runs
// `each` of them. They go round the stages: chunk c is on stage c % stages. Or they go
// there and back again (`folds`): the last stage has two chunks that follow each other,
// and so has the first one.
typedef struct tr_chunks {
    int64_t stages, each;
    bool folds;
} tr_chunks;

int tr__chunk_count(const tr_chunks *chunks);
// The stage that runs the chunk.
int64_t tr__chunk_stage(const tr_chunks *chunks, int chunk);
// The stage's chunks in their order: i = 0 .. each - 1.
int tr__stage_chunk(const tr_chunks *chunks, int64_t stage, int64_t i);

// Cuts units, of which each takes cost[u], into `parts` runs: of all cuts whose
// costliest part costs least, the one whose parts are most alike (the sum of squares is
// least). first: [parts + 1] where each begins; the last is the end. 1 <= parts <=
// units. TR_MEMORY.
tr_status tr__cut_units(const double *cost, int units, int parts, int *first,
                        tr_error *err);

#endif
