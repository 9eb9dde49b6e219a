// What a sequence of a plan asks of a machine, step by step: all that a walk of
// it needs, in a part of the plan's bytes. So the stages of a pipeline can be walked
// together, each with its own plan, of which one at a time is in memory.
#ifndef TR_SIM_TAPE_H
#define TR_SIM_TAPE_H

#include "plan/print/trace.h"
#include "sim/cost.h"

typedef enum tr_tape_kind {
    TR_TAPE_COMPUTE,  // follows what was computed before it
    TR_TAPE_JOB,      // goes on beside computing
    TR_TAPE_EXCHANGE, // the same, with other ranks
} tr_tape_kind;

// Work that steps ask for. Many ask for the same.
typedef struct tr_tape_work {
    double seconds;
    double variance;
    double products, attention; // of the seconds
    double flops, model_flops;
    int64_t gathered, reduced, between, copied, stored; // bytes
    // Ranks of this stage that exchange. Their stages: all; or two, `stages[0]` and
    // `stages[1]`; or this one alone: `meets` is false.
    int64_t members;
    bool meets;
    int32_t stages[2]; // the same where all do
    uint64_t hash;     // of what they exchange
} tr_tape_work;

typedef struct tr_tape_step {
    int32_t step; // of the plan's sequence
    int32_t work; // of works
    int32_t wait[TR_STREAMS];
    int32_t unit, micro; // as in spans
    uint8_t kind, stream, verb, subject;
    bool of_micro_batch;
    bool waits_for_all; // for what is under way on all streams
} tr_tape_step;

typedef struct tr_tape {
    int64_t stage;
    tr_share share;
    tr_tape_step *steps;
    size_t count, capacity;
    tr_tape_work *works;
    size_t work_count, work_capacity;
} tr_tape;

// What is walked of a plan.
typedef struct tr_tape_part {
    tr_sequence_kind kind;
    int64_t micros; // only the first so many micro-batches are there; 0: all
} tr_tape_part;

// Of the steps of the plan's sequence; of training, those that are done when a step
// makes the update that the one before has deferred to it, and defers its own. The
// caller clears it, also after an error. TR_MEMORY.
tr_status tr__tape_make(const tr_plan *plan, tr_tape_part part,
                        const tr_machine *machine, tr_tape *out, tr_error *err);
void tr__tape_clear(tr_tape *tape);
// Does the work of `a` need this stage?
bool tr__tape_needs(const tr_tape_work *a, int64_t stage);
// Do both stages exchange the same with each other?
bool tr__tape_meet(const tr_tape_work *a, const tr_tape_work *b);

#endif
