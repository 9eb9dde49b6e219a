// The walk of one rank's tape as the executor walks a plan (exec/walk/walk.c), with a
// clock in place of kernels. Steps of the compute stream follow each other; messages,
// copies, what NVMe reads and writes and what the host computes are queued when they
// are reached, worked off one after the other on their streams, beside each other and
// what is computed, until a step waits. Where the host's processors are the device, the
// host's steps are of the compute stream.
//
// Kernels of other ranks take longer or less: an exchange begins when the slowest of
// its group is expected to come to it, by how much was computed since ranks last waited
// for each other.
//
// While a kernel and a message are at work at the same time, each goes on at 1 - i of
// its speed, where i is the machine's interference of the two; so do a kernel and a
// copy, and a kernel and NVMe.
//
// An exchange with other stages begins when all of them have come to it, each with all
// that was queued before it done, and ends for all when it is done for each (stages.h).
#ifndef TR_SIM_WALK_H
#define TR_SIM_WALK_H

#include "sim/simulate.h"
#include "sim/tape.h"

enum { TR_WALK_QUEUE = TR_COMM_QUEUE }; // so many may wait on a stream

// How far an exchange with other stages is.
typedef enum tr_meeting {
    TR_MEETS_NOBODY, // it is none
    TR_MEETS_LATER,  // another stage has not come to it
    TR_MEETS,        // it is under way
    TR_MEETS_NO_MORE // done here, and not yet for another stage
} tr_meeting;

// What is queued or under way on a stream.
typedef struct tr_walk_job {
    int32_t at;   // the tape's step
    double left;  // seconds of work
    double begin; // when it came to the front, or could begin
    // When the slowest rank of its group comes to it; 0: it has.
    double ready;
    double variance; // of what this rank had computed until then
    tr_meeting meeting;
    // When the slowest of this stage's ranks is expected to come to it, and the
    // variance of that since stages last waited for each other.
    double expected, apart;
} tr_walk_job;

typedef struct tr_walk_stream {
    tr_walk_job queue[TR_WALK_QUEUE]; // a ring
    size_t first, count;
    int64_t done;         // steps
    double variance;      // of the last of them
    unsigned together;    // who have waited for each other when it was done
    double interference;  // with computing
    double busy, exposed; // seconds at work; in which nothing was computed
} tr_walk_stream;

// Who wait for each other: ranks of this stage; this stage and others.
enum { TR_WALK_RANKS, TR_WALK_STAGES, TR_WALK_GROUPS };

// What the front of a stream needs to be ready, or to be done.
typedef struct tr_walk_need {
    double seconds; // negative: nothing is there, or nothing that time alone brings
    double speed;   // of its own
    bool late;
} tr_walk_need;

typedef struct tr_sim_walk {
    const tr_tape *tape;
    tr_simulation result;          // so far
    double verb_seconds[TR_VERBS]; // at work: of the stream's time
    int64_t verb_steps[TR_VERBS];
    tr_span *spans; // where they are kept
    size_t span_count, span_capacity;
    bool keeps_spans;
    double now;
    double variance;                    // of the time of what has been computed
    double together[TR_WALK_GROUPS];    // the same when these last waited
    tr_walk_stream streams[TR_STREAMS]; // those that work beside the walk
    size_t at;                          // step of the tape
    int phase;                          // of the step
    bool ended;
    // What it is at: waits until so many steps of a stream are done, or nothing is left
    // on it; or computes.
    bool waits, computes;
    tr_stream awaited;
    int64_t wanted;
    double left, begin; // of computing
    double apart;       // of the exchange that the step begins
    // Until something is done, or ready; negative: it waits for other stages alone.
    double step, speed;
    tr_walk_need needs[TR_STREAMS];
    tr_status status;
} tr_sim_walk;

void tr__walk_begin(tr_sim_walk *walk, const tr_tape *tape, bool keeps_spans);
void tr__walk_clear(tr_sim_walk *walk);
// Goes on until it has to wait, computes, or has ended: no time passes. Then
// walk->step says what comes next.
void tr__walk_go_on(tr_sim_walk *walk);
void tr__walk_look_ahead(
    tr_sim_walk *walk); // also where another stage has changed a front
// Lets time pass: walk->step seconds at most.
void tr__walk_pass(tr_sim_walk *walk, double seconds);
// The front of a stream is done.
void tr__walk_finish(tr_sim_walk *walk, tr_stream on);
// The front of a stream; NULL: nothing is on it.
tr_walk_job *tr__walk_front(tr_sim_walk *walk, tr_stream on);
const tr_tape_work *tr__walk_work(const tr_sim_walk *walk, const tr_walk_job *job);

#endif
