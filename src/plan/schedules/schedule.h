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
    // A stage takes a wave forward through all of its chunks before it begins the next
    // one: who computes the loss outside of the model gets a wave's outputs before he
    // brings the next wave's data.
    bool one_by_one;
} tr_pipeline_place;

// Of the chunks of a stage the chunk-th, 0 to each - 1.
typedef struct tr_chunk_wave {
    int64_t chunk, wave;
} tr_chunk_wave;

// A kind of turn on one of a stage's chunks.
typedef struct tr_turn_choice {
    tr_turn_kind kind;
    int64_t chunk;
} tr_turn_choice;

enum { TR_TURN_CHOICES = 4 };

typedef struct tr_pipeline_schedule {
    bool flushes;        // all forwards come before the first backward
    bool weights_later;  // gradients of weights are turns of their own
    bool folds;          // chunks go there and back (tr_chunks)
    int64_t least, most; // chunks of a stage; 0: any number
    // What goes forward k-th, and backward: k = 0 .. each * waves - 1. Gradients of
    // weights come in the order of backwards. NULL: a stage takes whatever can go.
    tr_chunk_wave (*forward)(const tr_pipeline_place *at, int64_t k);
    tr_chunk_wave (*backward)(const tr_pipeline_place *at, int64_t k);
    // Turns that are forward and not yet backward, at most; and those whose activations
    // a stage keeps, where weights come later (else the same ones).
    int64_t (*under_way)(const tr_pipeline_place *at);
    int64_t (*kept)(const tr_pipeline_place *at);
    // Where whatever can go is taken: what a stage looks for first, in several ways.
    // The way counts by which all stages are done soonest.
    const tr_turn_choice (*tries)[TR_TURN_CHOICES]; // [try_count]
    int try_count;
} tr_pipeline_schedule;

extern const tr_pipeline_schedule tr__pipeline_1f1b, tr__pipeline_interleaved,
    tr__pipeline_breadth_first, tr__pipeline_zero_bubble, tr__pipeline_v;

// By tr_pipeline_order, NULL after the last: choices of the key pipeline.schedule.
extern const char *const tr__pipeline_names[];

// NULL: `which` is none.
const tr_pipeline_schedule *tr__pipeline_schedule(tr_pipeline_order which);
// Do stages make gradients of weights in turns of their own?
bool tr__weights_come_later(const tr_plan_request *request);
// How a model's chunks lie.
tr_chunks tr__pipeline_chunks(const tr_plan_request *request);

// The turns of the stage in a training step; with stage -1 those of all stages: what
// another one waits for comes before it. TR_MEMORY.
tr_status tr__pipeline_turns(const tr_pipeline_schedule *schedule,
                             const tr_pipeline_place *at, tr_turns *out, tr_error *err);
// In an evaluation, where waves go forward alone.
tr_status tr__pipeline_forwards(const tr_pipeline_schedule *schedule,
                                const tr_pipeline_place *at, tr_turns *out,
                                tr_error *err);
// So many waves of an evaluation that follow each other keep the stages at work.
int64_t tr__pipeline_evaluated(const tr_chunks *chunks);

#endif
