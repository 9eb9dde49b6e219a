// Walks a finished plan. Knows the shapes of steps and their guards, and no technique.
#ifndef TR_EXEC_EXECUTOR_H
#define TR_EXEC_EXECUTOR_H

#include "base/arena.h"
#include "comm/comm.h"
#include "data/order/feed.h"
#include "exec/guards.h"
#include "exec/statistics.h"
#include "exec/watch.h"
#include "plan/flow/plan.h"

typedef struct tr_executor tr_executor;

// The memory of a plan: one arena for each space in which the plan has bytes. An arena
// that exists already (not NULL) grows if it is too small, and keeps its content. The
// caller calls tr__arenas_destroy in any case. TR_MEMORY: arenas that could not grow
// are unchanged.
tr_status tr__arenas_fit(const tr_plan *plan, tr_arena *arenas[TR_SPACES],
                         tr_error *err);
void tr__arenas_destroy(tr_arena *arenas[TR_SPACES]);

// Binds a plan to its arenas (NULL: no bytes in that space) and its ranks (NULL: one
// rank), which must outlive the executor. The plan's bytes on NVMe get a file in
// `nvme_folder` (NULL: the plan has none there). The file has no name and vanishes with
// the process. TR_IO: there is no such folder, it is not writable, or it has too little
// room. TR_INTERNAL: the plan has a buffer outside of its arena.
tr_status tr__executor_create(const tr_plan *plan, tr_arena *const arenas[TR_SPACES],
                              tr_comm *comm, const char *nvme_folder, tr_executor **out,
                              tr_error *err);
void tr__executor_destroy(tr_executor *executor); // NULL-safe
// Connects the devices of the ranks, where the plan has them exchange by themselves
// (tr_plan_request.peers). Collective, before the first walk. TR_COMM, TR_MEMORY: on
// all ranks.
tr_status tr__executor_join(tr_executor *executor, tr_error *err);
// Switches to another plan of the same ranks. Its flat buffers lie at the same places
// of the arenas, which may have grown. The caller sets the feeds again. TR_MEMORY,
// TR_INTERNAL (a buffer outside of its arena): the executor keeps its plan.
tr_status tr__executor_replan(tr_executor *executor, const tr_plan *plan,
                              tr_arena *const arenas[TR_SPACES], tr_error *err);

// How NVMe is read: "io_uring", "threads" (io_uring is not permitted), "" (the plan
// does not use NVMe); and whether the reads bypass the page cache.
const char *tr__executor_nvme_method(const tr_executor *executor, bool *direct);

// Gives the host's stream a thread of its own beside the walk, for machines whose
// device is not the host's processors. Before this call the walk does the steps of that
// stream when it reaches them, because a second team of threads on the same cores would
// slow both down. TR_MEMORY, TR_INTERNAL: no thread could be started.
tr_status tr__executor_host_beside(tr_executor *executor, tr_error *err);
// Is there a stream beside the walk for what an update leaves to the next step? Else it
// is as well done at once.
bool tr__executor_works_beside(const tr_executor *executor);

// Where micro-batches come from, for training (0) and evaluation (1). Borrowed.
void tr__executor_feed(tr_executor *executor, int ring, tr_feed *feed);
// The memory of a ring of data slots, for its feed.
void *tr__executor_ring(tr_executor *executor, int ring);

// What a walk asks its caller.
typedef struct tr_walk_calls {
    // Called before each step, until this rank's statistics are complete. Returns true
    // to ask for an end. NULL: never.
    bool (*stop)(void *user);
    // Called at the step `decide`, when the statistics of all ranks are there, so all
    // ranks decide alike. Says what happens to the update, and gives the order for it.
    // An error ends the walk. NULL: the update is skipped.
    tr_status (*decide)(void *user, tr_decision *decision, tr_error *err);
    void *user;
    // The walk stops before each step that takes a micro-batch's data, that hands its
    // outputs out, and that tells other ranks of this one: see tr__executor_pause.
    bool in_parts;
    bool own_rows; // data come from the caller, in these pauses, and not from a feed
    // Only the first so many micro-batches of the sequence are there; 0: all. The
    // others are left out, on all ranks alike.
    int64_t micros;
} tr_walk_calls;

// Walks a sequence: does each step whose guard permits it, and waits for all steps that
// it has begun. Allocates nothing, except for own ops under AddressSanitizer
// (own_launch.h), and opens no file. `calls` may be NULL. Returns the errors of the
// feed, of the ranks and of the decision. TR_INTERRUPTED: an end was asked for. A
// single rank then returns at once. With several ranks the others must not wait for
// ever: the walk still moves what it has to move up to the decision, computes nothing,
// and the statistics tell all ranks (tr__walk_goes_on).
tr_status tr__executor_run(tr_executor *executor, tr_sequence_kind sequence,
                           const tr_run_context *context, const tr_walk_calls *calls,
                           tr_error *err);
// Makes the update that was deferred to the next step (tr__executor_is_deferred), with
// the order that was given for it.
tr_status tr__executor_settle(tr_executor *executor, const tr_run_context *context,
                              tr_error *err);

// Records when the steps of training run, from now on. Borrowed; NULL: records no more.
void tr__executor_watch(tr_executor *executor, tr_watch *watch);

// The sums of an evaluation by micro-batches of its sequence, double [evaluated]
// [TR_SUMS] (tr_plan.evaluated), since they were last cleared.
double *tr__executor_sums(tr_executor *executor);

// The scale of fixed-point sums in the next step.
typedef struct tr_fixed {
    double scale; // a power of two
    double limit; // the largest |gradient * scale| of a micro-batch
} tr_fixed;
void tr__executor_fix(tr_executor *executor, tr_fixed fixed);

// ---- in parts

// The step before which the walk has stopped; NULL: none is at work. What the step
// works on is there, and the caller's to read and write, until tr__executor_resume.
const tr_plan_step *tr__executor_pause(const tr_executor *executor);
// The first byte of operand `i` of that step.
void *tr__executor_operand(const tr_executor *executor, const tr_plan_step *step,
                           size_t i);
// Of that step's micro-batch: the rows that are there. Those that the caller has put in
// the slot, of which the first has this global sample index.
int64_t tr__executor_rows(const tr_executor *executor, const tr_plan_step *step);
void tr__executor_loaded(tr_executor *executor, const tr_plan_step *step,
                         uint64_t sample, int64_t rows);
// Where the caller's rows are readied for the slot of that step: the slot itself, or,
// where slots lie on a device which the host does not reach, memory of the host, for
// any step (NULL).
void *tr__executor_landing(const tr_executor *executor, const tr_plan_step *step);
// Begins a copy between memory of that device and the host's, or within one. Both stay
// until tr__executor_handed.
void tr__executor_hand(const tr_executor *executor, const void *from, void *to,
                       int64_t bytes);
// The gradient of an output as the caller has it, and the place from which the backward
// takes it, times `seed` (ops/flat/seed). `to` is the plan's memory; `from` is in the
// same space.
typedef struct tr_seeding {
    const void *from;    // [given], NULL: of 0 elements
    tr_dtype given_type; // f32, bf16 or f16
    int64_t given;
    void *to; // [room]
    tr_dtype type;
    int64_t room;
    float seed;
} tr_seeding;
// Begins it; `from` stays until tr__executor_handed has waited for all that was begun.
void tr__executor_seed(const tr_executor *executor, const tr_seeding *s);
tr_status tr__executor_handed(const tr_executor *executor, tr_error *err);
// Goes on to the next pause, or to the end, as tr__executor_run, which has begun it.
tr_status tr__executor_resume(tr_executor *executor, tr_error *err);
// Goes on as a walk that was asked for an end.
tr_status tr__executor_drop(tr_executor *executor, tr_error *err);

// Whether this rank asks all ranks for a checkpoint after the next step.
void tr__executor_ask(tr_executor *executor, bool save);

// The order for the next update steps. Copied.
void tr__executor_order(tr_executor *executor, const tr_update_order *order);

// Whether the last walk of a training step failed because a sample could not be read.
// With several ranks such a walk goes on without computing, so that the statistics tell
// all ranks.
bool tr__executor_is_unread(const tr_executor *executor);

// Whether a part of the update is deferred to the next training step. That step makes
// it, even if it is stopped or fails, unless ranks or NVMe fail.
bool tr__executor_is_deferred(const tr_executor *executor);

// The memory of a parameter of the plan: of its values (state -1) or of an optimizer
// state. NULL: this rank has only a part of it, or it is on NVMe or on a discrete
// device.
float *tr__executor_param(tr_executor *executor, int param, int state);
// The values of one that is in the memory of a discrete device, as kernels know them.
// NULL: this rank has only a part of it there.
const float *tr__executor_param_there(const tr_executor *executor, int param);
// The same for its gradient accumulator. NULL: also in an inference plan, and if the
// sums are not f32.
float *tr__executor_grad(tr_executor *executor, int param);
// Copies elements [first, first + count) of that accumulator to values [count] f32.
// Returns false if it is not whole on this rank, or in fixed point.
bool tr__executor_read_grad(const tr_executor *executor, int param, int64_t first,
                            int64_t count, float *values);

// Elements [first, first + count) of a parameter of the plan, at `data` (NULL: to be
// borrowed, from NVMe or from a discrete device); count 0: none. Where they are in the
// tensor that files hold says tr_plan_param.lies.
typedef struct tr_piece {
    float *data;
    int64_t first, count;
    int param, state; // whose it is
    bool scaled;      // of a state in 8 bits: returned by the scales that are there
} tr_piece;

// The pieces of a parameter (state -1), or of one of its optimizer states, that this
// rank holds and that must be set when weights are drawn or read.
tr_piece tr__executor_held(tr_executor *executor, int param, int state);
// The pieces of these that this rank writes into a checkpoint. The pieces of all ranks
// together are the whole tensor that files hold, each element once.
tr_piece tr__executor_own(tr_executor *executor, int param, int state);

// Borrows a run of a piece's elements from its element `at` on: as many as there is
// room for, at least one, and all of them if they are in memory. Valid until the next
// run is borrowed. TR_IO.
tr_status tr__executor_borrow(tr_executor *executor, const tr_piece *piece, int64_t at,
                              tr_piece *run, tr_error *err);
// Writes a changed run back.
tr_status tr__executor_return(tr_executor *executor, const tr_piece *run,
                              tr_error *err);

// States in 8 bits (ops/flat/packed_state): how many elements share a scale, 1: none
// do. The scales of a piece, which begins with a block, from that of its block `at` on:
// *count of them, at least one and good until something else is borrowed. Sets `count`
// of them, before the values are returned by pieces that are `scaled`. TR_IO.
int64_t tr__executor_block(const tr_executor *executor, int param, int state);
tr_status tr__executor_scales(const tr_executor *executor, const tr_piece *piece,
                              int64_t at, const float **scales, int64_t *count,
                              tr_error *err);
tr_status tr__executor_set_scales(const tr_executor *executor, const tr_piece *piece,
                                  int64_t at, const float *scales, int64_t count,
                                  tr_error *err);

// Call after weights have been drawn or read: rounds them into the 16-bit weights that
// units compute with, if there are any. TR_IO.
tr_status tr__executor_round(tr_executor *executor, tr_error *err);
// The same of one parameter.
tr_status tr__executor_round_param(tr_executor *executor, int param, tr_error *err);

// A state of the plan (plan->states), of its description; the same on every rank.
void *tr__executor_state(tr_executor *executor, int state);

// The logits of an inference plan, f32.
const float *tr__executor_logits(tr_executor *executor);

#endif
