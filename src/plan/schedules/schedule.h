// Schedules of a pipeline. Each is a file: in which order a stage takes waves forward
// and backward through its chunks of the model, and how many it may have under way.
// What a stage does when then follows (turns.c), the same on all stages.
#ifndef TR_PLAN_SCHEDULES_SCHEDULE_H
#define TR_PLAN_SCHEDULES_SCHEDULE_H

#include "plan/flow/turns.h"

#include <tranche/extend/plan.h>

typedef struct tr_pipeline_place {
    tr_chunks chunks;
    int64_t waves, stage;
    // How long a wave takes in each chunk, at least 1: [TR_TURN_KINDS][chunks].
    const int64_t *takes;
} tr_pipeline_place;

// Of the chunks of a stage the chunk-th, 0 to each - 1.
typedef struct tr_chunk_wave {
    int64_t chunk, wave;
} tr_chunk_wave;

typedef struct tr_pipeline_schedule {
    bool flushes;        // all forwards come before the first backward
    int64_t least, most; // chunks of a stage; 0: any number
    // What goes forward k-th, and backward: k = 0 .. each * waves - 1.
    tr_chunk_wave (*forward)(const tr_pipeline_place *at, int64_t k);
    tr_chunk_wave (*backward)(const tr_pipeline_place *at, int64_t k);
    // Turns that are forward and not yet backward, at most.
    int64_t (*under_way)(const tr_pipeline_place *at);
} tr_pipeline_schedule;

extern const tr_pipeline_schedule tr__pipeline_1f1b, tr__pipeline_interleaved,
    tr__pipeline_breadth_first;

// By tr_pipeline_order, NULL after the last: choices of the key pipeline.schedule.
extern const char *const tr__pipeline_names[];

// NULL: `which` is none.
const tr_pipeline_schedule *tr__pipeline_schedule(tr_pipeline_order which);
// How a model's chunks lie.
tr_chunks tr__pipeline_chunks(const tr_plan_request *request);

// The turns of the stage. TR_MEMORY.
tr_status tr__pipeline_turns(const tr_pipeline_schedule *schedule,
                             const tr_pipeline_place *at, tr_turns *out, tr_error *err);

#endif
