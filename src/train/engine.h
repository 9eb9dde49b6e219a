// Inside of the engine.
#ifndef TR_TRAIN_ENGINE_H
#define TR_TRAIN_ENGINE_H

#include "data/order/batcher.h"
#include "exec/executor.h"
#include "files/checkpoint/checkpoint.h"
#include "run/run.h"
#include "train/guard.h"
#include "train/loss_scale.h"
#include "train/noise.h"

#include <tranche/engine.h>

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

// Everything that a checkpoint brings back, besides the tensors.
typedef struct tr_counters {
    int64_t step;    // attempts
    int64_t update;  // applied
    int64_t skipped; // in all
    int64_t in_row;  // of them since the last applied update (tr__engine_skipped)
    int64_t cursor;  // next global sample
    int64_t learned; // samples of the applied updates
} tr_counters;

// Sums over the applied steps of the epoch that is at work.
typedef struct tr_epoch_sums {
    int64_t epoch;
    double loss, correct, targets;
    double seconds; // of this process's steps, skipped ones included
} tr_epoch_sums;

// A short batch has a plan of its own where that saves so many floating-point
// operations: some milliseconds, which are what it takes to change the plan.
#define TR_SHORT_SAVING 2e8

// Whether a call lets functions of the caller's, which it calls, call the engine.
typedef enum tr_lent { TR_LENT_NOT, TR_LENT_FREE, TR_LENT_TAKEN } tr_lent;

// Of the calls of an engine: see turn.c.
typedef struct tr_turn {
    pid_t process;             // that has created the engine
    _Atomic uintptr_t working; // the thread that is in a call that works; 0: none
    tr_lent lent;              // of that thread
} tr_turn;

struct tr_engine {
    tr_turn turn;
    tr_run *run;
    const tr_settings *settings; // the run's
    const tr_plan *plan;         // at work: of the whole batch, or of a short one
    const tr_plan *whole;        // of the whole batch
    tr_plan *made_plan;          // that it began with; NULL: the caller's
    tr_plan *own_plan;           // `whole`, where the batch has changed; else NULL
    tr_plan *short_plan; // of the last short batch; NULL: none since `whole` changed
    double least_saving; // work that it must save, in floating-point operations
    int64_t planned[TR_SPACES]; // bytes: the most of the ledgers of the plans so far
    tr_batcher batcher;         // the run's, with the batch of the step that comes
    int64_t wanted_batch;       // by the noise scale
    tr_noise noise;
    tr_guard guard;
    tr_comm *comm;               // NULL: one rank
    tr_arena *arenas[TR_SPACES]; // NULL: nothing there
    tr_executor *executor;
    tr_watch *watch;     // of the step that comes or was; NULL: it is not watched
    tr_feed *feed;       // of training
    bool unread;         // the newest step failed because a sample could not be read
    double base_hash;    // of the weights beside which an adapter is trained; 0: none
    bool stale_feed;     // not there, or past what the next step takes: one was dropped
    bool anew;           // begun with "resume": "never", and nothing saved since
    int64_t own_until;   // checkpoints of later steps in the out folder are of a branch
                         // that was left; INT64_MAX: there are none
    bool save_asked;     // in the last step, by rank 0 for all
    bool defers;         // updates may be left to the next step, beside its forward
    bool stale_params;   // other ranks have updated what this one keeps a copy of
    int fixed_exponent;  // reproducible: of the fixed-point sums of the next step
    int summed_exponent; // and of those of the last one
    tr_counters count;
    tr_epoch_sums epoch;
    tr_loss_scale scale; // of the next step
    tr_error dead;       // of status TR_INTERNAL: what ended an earlier call
    char blame[256];     // what the last step found first that was not finite
    double unscale;      // what makes the last gradients those of their mean loss
    double seed_power; // 2^k: the first power of two not below T times targets a sample
    double (*power)[2];       // [groups] products of the betas of the applied updates
    double (*next_power)[2];  // [2 * groups] with the update that is about to be
    tr_hyper *hyper;          // [groups] of the update that is about to be
    double *own_rate;         // [groups] the caller's; NAN: none
    bool (*stop)(void *user); // of steps and evaluations; NULL: never
    void *stop_user;
    tr_update_range *ranges;
    tr_matrix_part *matrix_parts; // of those that ranks share
    size_t range_count;
    struct tr_metrics *metrics; // of tr_engine_train, NULL outside of it
    tr_companions companions;   // what goes into every checkpoint; rank 0's
    struct tr_parts *parts;     // the step in parts; NULL: the model has a loss
};

// The value; what is not a number has no sign, so that all logs say "nan".
static inline double tr__plain(double value) {
    return isnan(value) ? NAN : value;
}

// ---- weights.c
// Draws every parameter as its unit says, or reads it from the model's folder.
tr_status tr__engine_weights(tr_engine *engine, tr_error *err);
// Of a run with an adapter: what is frozen, from the folder of the base; and the hash
// by which checkpoints know it.
tr_status tr__engine_read_base(tr_engine *engine, tr_error *err);
tr_status tr__engine_hash_base(tr_engine *engine, tr_error *err);
// Changes every weight by up to `part` of itself, up or down, in its own way in each
// draw.
tr_status tr__engine_perturb(tr_engine *engine, double part, int draw, tr_error *err);
// Are the weights that the ranks begin with, drawn or from a folder, the same? TR_COMM.
// At stage 0 all of them are compared, else samples of every tensor of the folder.
// Collective.
tr_status tr__engine_agree_weights(const tr_engine *engine, const char *folder,
                                   tr_error *err);
// The same of weights and states that are read from a set.
tr_status tr__engine_agree_set(const tr_engine *engine, const tr_tensor_set *set,
                               const char *from, tr_error *err);

// ---- fixed.c
// Where the sums of the first step stand, when nothing is known of its gradients.
int tr__engine_first_exponent(const tr_engine *engine);
// The same for the step after one whose gradients, as they lie in the sums, had this
// norm.
int tr__engine_next_exponent(const tr_engine *engine, double norm);
// What is added to it where a step of the batch `to` follows one of the batch `from`.
int tr__engine_exponent_shift(const tr_engine *engine, int64_t from, int64_t to);
// A coarser one, after gradients that were too large.
int tr__engine_coarser(int exponent);
// Hands engine->fixed_exponent to the executor.
void tr__engine_fix(tr_engine *engine);

// ---- update.c
// Which parameters share hyper-parameters, as ranges of the flat buffers.
tr_status tr__engine_ranges(tr_engine *engine, tr_error *err);
// Of these, matrices that ranks share: the ranges learn of what the other ranks have.
tr_status tr__engine_matrices(tr_engine *engine, tr_error *err);
// Sets rates, betas and their products for update `number` (from 1) and hands the order
// to the executor. Returns the rate of the parameters that are in no group.
double tr__engine_order(tr_engine *engine, int64_t number, double grad_scale);
// Says the optimizer, and the rate of the update that comes next.
void tr__engine_say_rate(const tr_engine *engine);

// ---- resize.c
// What tr__batcher_next takes for the step that comes, whose batch may be another than
// the last one's.
tr_batcher tr__engine_next_batcher(const tr_engine *engine);
// Gives the step that comes its effective batch, where that changes: the plan at work,
// or a new one in the memory that is there, or in more; and where there are samples for
// far fewer micro-batches than that has, a plan of so many. Collective.
tr_status tr__engine_follow_batch(tr_engine *engine, tr_error *err);
// The plan at work counts in engine->planned.
void tr__engine_note_planned(tr_engine *engine);

// ---- watch_step.c
// What the guard makes of a step. TR_NUMBERS: more spikes than the run is to survive.
tr_status tr__engine_guard(tr_engine *engine, tr_step_result *result, tr_error *err);
// What a step tells of the noise scale, after the guard: a step that is skipped tells
// nothing.
void tr__engine_measure(tr_engine *engine, const tr_step_statistics *statistics,
                        tr_step_result *result);

// Counts updates that were skipped one after the other. `overflow`: loss or gradient
// was not finite. TR_NUMBERS: more than max_skipped_updates; the run has diverged.
tr_status tr__engine_skipped(tr_engine *engine, const tr_step_result *result,
                             bool overflow, tr_error *err);

// ---- room.c
// TR_IO: the disk has no room for the checkpoints that this run will keep.
tr_status tr__engine_check_room(const tr_engine *engine, tr_error *err);

// ---- checkpoint.c, resume.c
// Weights, optimizer and schedule as they were in a checkpoint; steps and data go on.
// Collective.
tr_status tr__engine_return(tr_engine *engine, const char *folder, tr_error *err);
// tr_engine_save that tells how far it is. Collective.
tr_status tr__engine_save(tr_engine *engine, const tr_save_options *options,
                          const tr_progress *progress, tr_error *err);
// Continues from the checkpoint that the run's "resume" names, if there is one.
// Collective.
tr_status tr__engine_resume(tr_engine *engine, tr_error *err);

// ---- resume_deepspeed.c
// Takes weights, optimizer and counts from a folder that DeepSpeed saved. Collective.
tr_status tr__engine_load_deepspeed(tr_engine *engine, const char *folder,
                                    tr_error *err);

// ---- numbers.c
// What a checkpoint keeps beside counters and tensors: the batch, the noise scale, the
// guard. What is missing stays as it is.
void tr__engine_put_numbers(const tr_engine *engine, tr_state_numbers *numbers);
void tr__engine_get_numbers(tr_engine *engine, const tr_state_numbers *numbers);
// Samples of the applied updates; of a checkpoint that does not say, all.
int64_t tr__engine_learned(const tr_state *state);
// The weights have seen so many updates.
void tr__engine_count_updates(tr_engine *engine, int64_t updates);

// ---- evaluate.c
// An evaluation that can be interrupted.
tr_status tr__engine_evaluate_until(tr_engine *engine, int64_t samples,
                                    bool (*stop)(void *user), void *user,
                                    tr_evaluation *result, tr_error *err);

// ---- turn.c
void tr__turn_begin(tr_turn *turn);
// Is this the process that has created the engine?
bool tr__turn_is_here(const tr_turn *turn);
// TR_USAGE: there is no engine, the argument `name` is NULL, the engine is another
// process's, or another thread is in a call of it. TR_INTERNAL: an earlier call has
// ended so.
tr_status tr__engine_need_any(const tr_engine *engine, const void *argument,
                              const char *function, const char *name, tr_error *err);
// TR_USAGE also: a step is at work in parts.
tr_status tr__engine_need(const tr_engine *engine, const void *argument,
                          const char *function, const char *name, tr_error *err);
// The same, and takes the engine for a call that works, until tr__engine_leave.
// TR_USAGE also: it is at work on this thread, which is in a function of the caller's.
tr_status tr__engine_enter(tr_engine *engine, const void *argument,
                           const char *function, const char *name, tr_error *err);
// As tr__engine_need_any, and takes the engine for a call that does a part of a step.
tr_status tr__engine_enter_part(tr_engine *engine, const char *function, tr_error *err);
// What the call has come to: after TR_INTERNAL, all later ones return that error. err
// may be NULL.
void tr__engine_leave(tr_engine *engine, tr_status status, const tr_error *err);
// Of a call that has not entered: remembers TR_INTERNAL.
void tr__engine_note(tr_engine *engine, tr_status status, const tr_error *err);
// As tr__engine_enter, for what makes steps. TR_USAGE also: the engine is lent.
tr_status tr__engine_enter_to_step(tr_engine *engine, const void *argument,
                                   const char *function, const char *name,
                                   tr_error *err);
// Whether a call that works lets a function of the caller's, on its own thread, call
// the engine meanwhile.
void tr__engine_lend(tr_engine *engine, bool lent);

// ---- step.c
// A step that can be interrupted.
tr_status tr__engine_step_until(tr_engine *engine, bool (*stop)(void *user), void *user,
                                tr_step_result *result, tr_error *err);

// ---- outside.c
// Room for steps in parts, where the model has no loss. TR_MEMORY.
tr_status tr__engine_take_parts(tr_engine *engine, tr_error *err);
// Ends a step that is at work, for an engine that ends.
void tr__engine_end_parts(tr_engine *engine);
// TR_USAGE: the model has no loss, so the function cannot do its work.
tr_status tr__engine_need_loss(const tr_engine *engine, const char *function,
                               tr_error *err);

// ---- engine.c
// Makes the update that was deferred to the next step, if there is one. Collective.
tr_status tr__engine_settle(tr_engine *engine, tr_error *err);
// Begins to read training data at the cursor, where there are any.
tr_status tr__engine_start_feed(tr_engine *engine, tr_error *err);
// Whether this or another rank has been asked for an end: a `stop` for the executor,
// whose `user` is a tr_asking.
typedef struct tr_asking {
    tr_comm *comm; // NULL: one rank
    bool (*stop)(void *user);
    void *user;
} tr_asking;
bool tr__is_asked(void *asking);
// The end of work that all ranks do together, as this one has found it; TR_INTERRUPTED
// is what all have found. Another error ends them all.
tr_status tr__engine_end_work(tr_engine *engine, tr_status status, const tr_error *mine,
                              tr_error *err);

#endif
