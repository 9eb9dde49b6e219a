// What the two halves of tr__check_steps share: the walk through a sequence
// (check_steps) and what each buffer holds meanwhile (check_contents).
#ifndef TR_PLAN_CHECK_WALK_H
#define TR_PLAN_CHECK_WALK_H

#include "plan/check.h"

typedef enum tr_content_kind {
    TR_HOLDS_NOTHING,
    TR_HOLDS_BOUNDARY, // what unit `unit` is given
    TR_HOLDS_GRADIENT, // the gradient of that
    TR_HOLDS_SAVED,
    TR_HOLDS_WAVE,
    TR_HOLDS_WAVE_GRADIENT,
    TR_HOLDS_PARAMETERS, // all of flat buffer `unit`
    TR_HOLDS_PART,       // this rank's part of its parameters
    TR_HOLDS_REDUCED,    // and of its gradients, summed over ranks
    TR_HOLDS_READ,       // elements of a part of it, as they are on NVMe
    TR_HOLDS_UNSTORED,   // the same, newer than on NVMe
    TR_HOLDS_MEASURES,   // parts of the norms of tensors
    TR_HOLDS_NORMS,      // of the tensors
} tr_content_kind;

// What a buffer holds. `micro`: of wave tensors, the first of the wave; of what is
// staged for NVMe, the first element.
typedef struct tr_content {
    tr_content_kind kind;
    int32_t unit;
    int64_t micro;
    bool whole; // else a later segment adds the rest
    tr_part part;
    int64_t count; // elements
} tr_content;

// How far one micro-batch is in one unit: segments that are done.
typedef struct tr_progress {
    int forward, backward;
    bool recomputed;
} tr_progress;

// Where a flat buffer's gradient is at one moment.
typedef struct tr_flat_progress {
    int32_t grad;        // buffer in which it is being made, -1: none
    int32_t gaps;        // buffer whose gaps have been cleared, -1: none
    bool cleared;        // and all of it
    int32_t sum;         // buffer in which it is being folded up, -1: none
    int64_t reductions;  // of this step
    bool gathered_grad;  // after the last of them
    bool gathered_param; // of this step
    bool fetched;        // of this step
    int64_t evictions;   // of this step
    bool folded;         // sums that stay have been written
    bool squared;        // on their way to NVMe
    bool stored;         // gradients are on NVMe
    // By the update, elements of this rank's part so far: read and written of each part
    // on NVMe, of the phase that is at work; measured, and updated.
    int64_t read[TR_PARTS], written[TR_PARTS], measured, updated;
} tr_flat_progress;

// Streams that go on beside computing.
enum { TR_BESIDE_COMM, TR_BESIDE_COPY, TR_BESIDE_NVME, TR_BESIDE };
tr_stream tr__beside_stream(int beside);

typedef struct tr_check_walk {
    const tr_plan *plan;
    tr_sequence_kind kind;
    const tr_plan_step *step;
    int64_t micros;
    tr_content *contents;    // [buffers]
    tr_progress *progress;   // [units][micros]
    int *combined;           // [units] combine steps so far in this pass of the wave
    bool *written;           // [params] the gradient has been written
    bool *gauged;            // [params] and gauged
    bool *summed;            // [params] and folded, of one micro-batch at least
    bool *updated;           // [flats]
    bool *measured;          // [flats]
    int32_t measures;        // buffer in which they are measured, -1: none
    bool gathered, totalled; // what ranks have measured; the norms are made
    bool *tracked;           // [units]
    tr_flat_progress *flats;
    // Of the streams beside computing: the last step to work on each
    // buffer [buffers]; steps begun, steps known to be done.
    int32_t *busy[TR_BESIDE];
    int32_t issued[TR_BESIDE], done[TR_BESIDE];
    bool recorded; // the record has been brought together
    int64_t loaded, unloaded;
    bool cleared, normed;
    size_t applied; // the first step that is done only where the update is applied
    bool defers;    // an update can be left to the next step
    tr_error *err;
} tr_check_walk;

// Says which step is wrong, and how.
tr_status tr__check_wrong(const tr_check_walk *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
const tr_unit_program *tr__check_unit(const tr_check_walk *w);
int64_t tr__check_wave(const tr_check_walk *w); // first micro-batch of the step's wave
// The same of what the unit's wave tensors are collected over: that wave, or the step.
int64_t tr__check_wave_tensors(const tr_check_walk *w);

// The step's buffers are large enough for its program (NULL: none), there where it
// touches them, and each in one slot only.
tr_status tr__check_slots(const tr_check_walk *w, const tr_program *program);
// What the step reads in this slot must be there.
tr_status tr__check_expect(const tr_check_walk *w, tr_slot slot, tr_content want);
// The step leaves this in the slot's buffer.
void tr__check_leave(const tr_check_walk *w, tr_slot slot, tr_content what);
// The same, of a block that the segments of a unit fill one after the other.
tr_status tr__check_fill(const tr_check_walk *w, tr_slot slot, tr_content what,
                         bool first, bool last);
// The same, of a block that all micro-batches of a wave add to; `begins`: the first.
tr_status tr__check_fill_wave(const tr_check_walk *w, tr_slot slot,
                              tr_content_kind kind, bool begins);

// ---- check_flats.c
// Steps that move, fold or clear flat buffers.
tr_status tr__check_gather(tr_check_walk *w);
tr_status tr__check_reduce(tr_check_walk *w);
tr_status tr__check_fold(tr_check_walk *w);
tr_status tr__check_fetch(tr_check_walk *w);
tr_status tr__check_evict(tr_check_walk *w);
tr_status tr__check_clear_gaps(tr_check_walk *w);
// ---- check_gauge.c
// Gradients that are measured are there, of the first micro-batch and of it alone.
tr_status tr__check_gauge(tr_check_walk *w);
// Gradients of a tied tensor that are measured are there, of the first wave and of it
// alone.
tr_status tr__check_gauge_tied(tr_check_walk *w);
// Before the norm: all are that should be.
tr_status tr__check_gauged(const tr_check_walk *w);
// What a program reads is there, and what it makes has its place.
tr_status tr__check_binding(tr_check_walk *w, const tr_program *program);
// The step works on these buffers (-1: none) on this stream from now until somebody
// waits for it.
tr_status tr__check_begin(tr_check_walk *w, tr_stream stream, int32_t from, int32_t to);
// Takes note of what the step waits for, which must have begun; nothing that it names
// is being worked on beside it.
tr_status tr__check_idle(tr_check_walk *w);
// The step, which must be of this stream, works on these buffers (-1: none) from now
// until somebody waits for it.
tr_status tr__check_begin(tr_check_walk *w, tr_stream stream, int32_t from, int32_t to);
// Is another stream than this one at work on the buffer?
bool tr__check_is_busy_elsewhere(const tr_check_walk *w, tr_stream stream,
                                 int32_t buffer);
// What is to leave, in the slot INPUT or in the flat's sums, is there and complete.
tr_status tr__check_leaving(const tr_check_walk *w);
// ---- check_boundary.c
// Steps that move what a unit is given.
tr_status tr__check_boundary(tr_check_walk *w);

// Before the norm: every gradient is complete, and is where the norm looks for it.
tr_status tr__check_gradients(const tr_check_walk *w);
bool tr__check_grads_pass(const tr_plan *plan, int flat);

// ---- check_nvme.c
tr_status tr__check_read(tr_check_walk *w);
tr_status tr__check_write(tr_check_walk *w);
tr_status tr__check_square(tr_check_walk *w);
// Fixed-point sums are turned into f32 piece by piece, in a buffer of the step.
tr_status tr__check_scratch(const tr_check_walk *w);
// A fetch has in INPUT what it is to take, an evict in OUTPUT where to put it, as far
// as these are on NVMe.
tr_status tr__check_fetch_staged(tr_check_walk *w);
tr_status tr__check_evict_staged(tr_check_walk *w);
// The elements of an update are the next of its flat buffer, and what is on NVMe of
// them is staged.
tr_status tr__check_update(tr_check_walk *w);
// The same of its first phase. And before its second: that the first has read all, and
// written the states.
tr_status tr__check_first_phase(tr_check_walk *w);
tr_status tr__check_second_phase(tr_check_walk *w);
// Has the update of a flat buffer read and written all?
bool tr__check_is_updated(const tr_check_walk *w, int flat);
// At the norm: an update that the step before has left is done, and the next begins.
tr_status tr__check_late_updates(tr_check_walk *w);

// ---- check_norms.c
// The norms of tensors: measured, brought together, made, there for the update.
tr_status tr__check_measure(tr_check_walk *w);
tr_status tr__check_gather_norms(tr_check_walk *w);
tr_status tr__check_total(tr_check_walk *w);
tr_status tr__check_norms(const tr_check_walk *w);

// Buffers that a step names, each once for each time: in its slots and its binding.
enum { TR_STEP_BUFFERS_MAX = TR_SLOTS + 2 * TR_UNIT_FLATS_MAX };
int tr__check_named(const tr_plan *plan, const tr_plan_step *step,
                    int32_t buffers[TR_STEP_BUFFERS_MAX]);

#endif
