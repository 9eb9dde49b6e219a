// Walks a finished plan. Knows the shapes of steps and their guards, and no technique.
#ifndef TR_EXEC_EXECUTOR_H
#define TR_EXEC_EXECUTOR_H

#include "base/arena.h"
#include "comm/comm.h"
#include "data/feed.h"
#include "exec/guards.h"
#include "exec/statistics.h"
#include "exec/watch.h"
#include "plan/plan.h"

typedef struct tr_executor tr_executor;

// The memory of a plan, one arena for each space in which it has bytes. One that is
// there (else NULL) grows where it is too small, and what is in it stays;
// tr__arenas_destroy in any case. TR_MEMORY: those that did not grow are as they were.
tr_status tr__arenas_fit(const tr_plan *plan, tr_arena *arenas[TR_SPACES],
                         tr_error *err);
void tr__arenas_destroy(tr_arena *arenas[TR_SPACES]);

// Binds a plan to its arenas (NULL where it has no bytes in a space) and its ranks
// (NULL: one rank). They must outlive the executor. What the plan has on NVMe gets a
// file in `nvme_folder` (NULL: nothing is there), which has no name and is gone with
// the process. TR_IO: no such folder, not writable, too little room. TR_INTERNAL: the
// plan has a buffer outside of its arena.
tr_status tr__executor_create(const tr_plan *plan, tr_arena *const arenas[TR_SPACES],
                              tr_comm *comm, const char *nvme_folder, tr_executor **out,
                              tr_error *err);
void tr__executor_destroy(tr_executor *executor); // NULL-safe
// Goes over to another plan of the same ranks, whose flat buffers lie where they lay in
// the arenas, which may have grown. Feeds are to be set anew. TR_MEMORY, TR_INTERNAL (a
// buffer outside of its arena): as it was.
tr_status tr__executor_replan(tr_executor *executor, const tr_plan *plan,
                              tr_arena *const arenas[TR_SPACES], tr_error *err);

// How NVMe is read: "io_uring", "threads" (io_uring is not permitted), "" (it is not);
// and whether past the page cache.
const char *tr__executor_nvme_method(const tr_executor *executor, bool *direct);

// From now on the host's stream works on a thread of its own, beside the walk: for
// machines whose device is not the host's processors. As created, the walk does its
// steps when it reaches them, since a second team of threads on the same cores would
// slow both. TR_MEMORY, TR_INTERNAL: no thread.
tr_status tr__executor_host_beside(tr_executor *executor, tr_error *err);

// Where micro-batches come from, for training (0) and evaluation (1). Borrowed.
void tr__executor_feed(tr_executor *executor, int ring, tr_feed *feed);
// The memory of a ring of data slots, for its feed.
void *tr__executor_ring(tr_executor *executor, int ring);

// What a walk asks its caller.
typedef struct tr_walk_calls {
    // Before a step, until this rank's statistics are complete: is an end asked for?
    // NULL: never.
    bool (*stop)(void *user);
    // At the step decide: what is to become of the update? All ranks' statistics are
    // there, from which all decide alike; an order for the update is given before it
    // answers. An error ends the walk. NULL: the update is skipped.
    tr_status (*decide)(void *user, tr_decision *decision, tr_error *err);
    void *user;
} tr_walk_calls;

// Walks through a sequence: does the steps that their guards let be done, and waits
// for all that they have begun. No allocation, no file opened. `calls` may be NULL.
// Errors: what the feed, the ranks and the decision say. TR_INTERRUPTED: an end was
// asked for; one rank returns at once; with more ranks, which must not be left waiting,
// the walk moves what it has to move up to the decision, computes nothing, and the
// statistics tell all ranks (tr__walk_goes_on).
tr_status tr__executor_run(tr_executor *executor, tr_sequence_kind sequence,
                           const tr_run_context *context, const tr_walk_calls *calls,
                           tr_error *err);
// Makes the update that was deferred to the next step (tr__executor_is_deferred), of
// the order that was given for it.
tr_status tr__executor_settle(tr_executor *executor, const tr_run_context *context,
                              tr_error *err);

// From now on, notes when the steps of training are at work. Borrowed; NULL: no more.
void tr__executor_watch(tr_executor *executor, tr_watch *watch);

// double [TR_SUMS] of evaluation, since they were last cleared.
double *tr__executor_sums(tr_executor *executor);

// Where fixed-point sums stand in the step that comes.
typedef struct tr_fixed {
    double scale; // a power of two
    double limit; // the largest |gradient * scale| of a micro-batch
} tr_fixed;
void tr__executor_fix(tr_executor *executor, tr_fixed fixed);

// Whether this rank asks all of them for a checkpoint after the step that comes.
void tr__executor_ask(tr_executor *executor, bool save);

// For the next update steps. Copied.
void tr__executor_order(tr_executor *executor, const tr_update_order *order);

// Whether the newest walk, of a training step, failed because a sample could not be
// read. With ranks it goes on without computing, so that the statistics tell all.
bool tr__executor_is_unread(const tr_executor *executor);

// Whether some of the update is deferred to the next training step. That makes it, also
// if it is stopped or fails, unless ranks or NVMe fail.
bool tr__executor_is_deferred(const tr_executor *executor);

// Memory of a parameter of the plan: its values (state -1) or an optimizer state; NULL
// where this rank has only a part of it, and on NVMe or a discrete device.
float *tr__executor_param(tr_executor *executor, int param, int state);
// The same of its gradient accumulator; NULL in an inference plan, where the sums are
// not f32, and on NVMe or a discrete device.
float *tr__executor_grad(tr_executor *executor, int param);
// Elements [first, first + count) of what that holds, as f32: values [count]. false:
// not here in one piece, or in fixed point.
bool tr__executor_read_grad(const tr_executor *executor, int param, int64_t first,
                            int64_t count, float *values);

// Elements [first, first + count) of the tensor that files hold (a parameter may be a
// slice of one: tr_plan_param), at `data` (NULL: to be borrowed, from NVMe or from a
// discrete device); count 0:
// none.
typedef struct tr_piece {
    float *data;
    int64_t first, count;
    int param, state; // whose it is
} tr_piece;

// What this rank holds of a parameter (state -1) or of one of its optimizer states, and
// must be given when weights are drawn or read.
tr_piece tr__executor_held(tr_executor *executor, int param, int state);
// What of that this rank writes into a checkpoint: together the ranks' pieces are the
// whole, each element once.
tr_piece tr__executor_own(tr_executor *executor, int param, int state);

// The run of a piece's elements from its element `at` on that there is room for: at
// least one, all of them where they are in memory. Good until the next one is borrowed.
// Errors: TR_IO.
tr_status tr__executor_borrow(tr_executor *executor, const tr_piece *piece, int64_t at,
                              tr_piece *run, tr_error *err);
// Puts a run back that was changed.
tr_status tr__executor_return(tr_executor *executor, const tr_piece *run,
                              tr_error *err);

// After weights have been drawn or read: what units compute with is made of them, where
// that is of 16 bits. Errors: TR_IO.
tr_status tr__executor_round(tr_executor *executor, tr_error *err);
// The same of one parameter.
tr_status tr__executor_round_param(tr_executor *executor, int param, tr_error *err);

// In words what the number in the statistics says: micro-batch and tensor; "" for 0.
// dst: [bytes].
void tr__executor_blame(const tr_executor *executor, double first, char *dst,
                        size_t bytes);

// A state of the plan (plan->states), of its description; the same on every rank.
void *tr__executor_state(tr_executor *executor, int state);

// The logits of an inference plan, f32.
const float *tr__executor_logits(tr_executor *executor);

#endif
