// A step that is under way: in one walk, or in parts.
#ifndef TR_TRAIN_ENGINE_ATTEMPT_H
#define TR_TRAIN_ENGINE_ATTEMPT_H

#include "train/engine.h"

typedef struct tr_step_attempt {
    tr_engine *engine;
    tr_asking ask;
    tr_batch batch;
    tr_step_statistics statistics;
    tr_step_result *result;
    double begin, waited; // tr__seconds(), and the feed's waits, when it began
    bool stopped;         // a rank was asked for an end, or lacks a sample
    bool too_large;       // the gradients, for the fixed-point sums
    bool overflow;        // loss or gradients are not finite
} tr_step_attempt;

// Of an engine whose model has no loss: its step in parts.
typedef struct tr_parts {
    tr_step_attempt attempt;
    tr_step_result made;
    float seed;  // of this step's gradients
    bool counts; // the micro-batch at work, also without rows
} tr_parts;

// The step that comes, with the batch and the data that it is to have. Collective.
tr_status tr__attempt_prepare(tr_engine *engine, tr_error *err);
void tr__attempt_begin(tr_step_attempt *a, tr_engine *engine, const tr_asking *ask,
                       tr_step_result *result);
// What a walk of it needs.
void tr__attempt_walk(tr_step_attempt *a, tr_run_context *context,
                      tr_walk_calls *calls);
// What the walk has come to, which ended with `status` and *mine. Collective where a
// rank was stopped.
tr_status tr__attempt_walked(tr_step_attempt *a, tr_status status, const tr_error *mine,
                             tr_error *err);
// The step counts: fills in its result.
tr_status tr__attempt_end(tr_step_attempt *a, tr_error *err);
// The end of a step that failed, with *mine, on all ranks.
tr_status tr__attempt_fail(tr_engine *engine, tr_status status, const tr_error *mine,
                           tr_error *err);

#endif
