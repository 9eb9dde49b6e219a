// The engine: trains a run by its plan, a step at a time or all at once.
//
//     tr_run_open -> tr_plan_make -> tr_engine_create -> tr_engine_step ...
//                                                     -> tr_engine_save
#ifndef TRANCHE_ENGINE_H
#define TRANCHE_ENGINE_H

#include <tranche/run.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tr_engine tr_engine;

// A number over the ranks.
typedef struct tr_spread {
    double least, mean, most;
} tr_spread;

typedef struct tr_step_result {
    int64_t step;        // attempts so far, this one included
    int64_t update;      // of them applied
    int64_t epoch;       // of the step's first sample, from 0
    int64_t samples;     // consumed so far, this step included
    int64_t batch;       // samples of this step
    int64_t train_batch; // the effective batch T: more than `batch` at an epoch's end
    double targets;      // of this step
    double loss;         // sum over all targets / their count: what was optimized
    double accuracy;     // share of targets that the best guess got right
    double lr;           // of the parameters that are in no group
    double grad_norm;    // before clipping
    bool skipped; // nothing was changed: not finite, nothing to learn from, a spike
    // The gradient noise scale (McCandlish et al. 2018), smoothed: in samples; tr S and
    // |G|^2 apart. NAN: not known, or not measured.
    double noise_scale, noise_trace, noise_gradient;
    // The spike guard: which number was far outside of its running spread ("loss",
    // "grad_norm", "not_finite"; "": none), and what is done ("warn", "skip",
    // "rollback"; ""). A rollback skips the update, and asks for tr_engine_rollback.
    const char *spike, *act;
    double loss_scale; // that the gradients were made with
    double seconds;
    double wait_seconds; // of them, spent waiting for data
    // Of each rank, up to the moment at which all have their gradients: seconds,
    // seconds of them spent waiting for other ranks, and the most bytes that the
    // process has had.
    tr_spread rank_seconds, rank_wait_seconds, rank_peak_bytes;
} tr_step_result;

typedef struct tr_evaluation {
    double loss;
    double accuracy;
    int64_t samples;
} tr_evaluation;

// Takes all memory of the run, draws or loads the weights, and resumes from a
// checkpoint as the run's options say. `run` and `plan` must outlive the engine.
// Collective. Errors: TR_BUDGET: more memory than there is; TR_MEMORY; TR_IO: a
// checkpoint or weights that do not fit, with the reason; TR_DATA; TR_COMM: the ranks'
// runs, plans or data differ.
//
// What is collective here ends in the same way on all ranks. An error of one of them in
// the middle of a step or an evaluation, where the others wait for it, also ends what
// binds them (tr_comm_abandon): every later call returns it again.
tr_status tr_engine_create(tr_run *run, const tr_plan *plan, tr_engine **out,
                           tr_error *err);
void tr_engine_destroy(tr_engine *engine); // NULL-safe

// One optimizer step. Collective. TR_OK also when the step was skipped. Does not write
// metrics or checkpoints. A failed step changed nothing. TR_INTERRUPTED: a rank asked
// for an end (tr_engine_train's `stop`), and all have dropped the step. From the first
// step on, OpenMP's other threads of the calling one take no signals, and it holds its
// own while a matrix product runs: handlers run between two of them.
tr_status tr_engine_step(tr_engine *engine, tr_step_result *result, tr_error *err);

// Goes back to the weights, optimizer and schedule of the newest good checkpoint below
// the run's out folder, lowers the rate and warms it up again, as the run's
// "spike_guard" says. Steps and data go on. *step: the checkpoint's; -1: there is none,
// and nothing has changed. Collective. TR_IO: the checkpoint is damaged.
tr_status tr_engine_rollback(tr_engine *engine, int64_t *step, tr_error *err);

// Notes when each step of the plan is at work, in the step that comes; in each further
// one anew, until it is written. Takes the memory for it. Collective.
tr_status tr_engine_watch(tr_engine *engine, tr_error *err);
// Writes what was noted of the last step, of all ranks, as JSON trace events, which
// ui.perfetto.dev shows; rank 0 writes. Each rank's time begins with its own step.
// Collective. TR_USAGE: no step has been watched; TR_IO names the path.
tr_status tr_engine_write_trace(tr_engine *engine, const char *path, tr_error *err);

// Loss (and accuracy) over the first `samples` validation samples (0: all), in order.
// TR_USAGE when the run has no validation data. Collective.
tr_status tr_engine_evaluate(tr_engine *engine, int64_t samples, tr_evaluation *result,
                             tr_error *err);

// A checkpoint of the last applied update below the run's out folder. Collective.
tr_status tr_engine_save(tr_engine *engine, tr_error *err);

// Writes run.json (the run as resolved) and plan.txt into the out folder; then steps,
// metrics, evaluations and checkpoints until the run's end, as `tranche train` does.
// Asks `stop` (may be NULL) between the steps of the plan: when true, the unfinished
// step is dropped, the last update is saved, and TR_INTERRUPTED comes back.
tr_status tr_engine_train(tr_engine *engine, bool (*stop)(void *user), void *user,
                          tr_error *err);

int64_t tr_engine_steps_done(const tr_engine *engine); // attempts
// In fp16, of a last step that was skipped: the first micro-batch and unit that handed
// on what is not finite, in words; "" where that is not known. Until the next step.
const char *tr_engine_blame(const tr_engine *engine);

// A parameter by its full name: its current values, owned by the engine; NULL when
// there is none, when this rank keeps only a part of it (stage 3), or when it is used
// in slices and so lies in several places. `count` may be NULL. At stages 1 and 2 the
// values that other ranks update are those of the last evaluation or step's beginning;
// tr_engine_refresh makes them current.
const float *tr_engine_parameter(const tr_engine *engine, const char *name,
                                 int64_t *count);
// The name of the model's tensor number `index`; NULL after the last.
const char *tr_engine_parameter_name(const tr_engine *engine, size_t index);
// Changes all elements of a tensor, in the order of files: values [count]. With ranks
// each keeps what is its own: all must be given the same. TR_USAGE: no such tensor, or
// another count; TR_IO.
tr_status tr_engine_set_parameter(tr_engine *engine, const char *name,
                                  const float *values, int64_t count, tr_error *err);
// The gradient of the last step's loss (the mean over its targets), before clipping:
// values [count]. Where a step is not to change anything, its rate is 0. TR_USAGE: no
// such tensor, or its gradient is not in this process's memory (ranks that share it
// out, NVMe) or in fixed point (reproducible mode).
tr_status tr_engine_gradient(const tr_engine *engine, const char *name, float *values,
                             int64_t count, tr_error *err);
// Stages 1 and 2: gives every rank the parameters as they are now. Collective.
tr_status tr_engine_refresh(tr_engine *engine, tr_error *err);
// Bytes: the device arena's high-water mark; that of device or host with what the data
// sets hold there, beside the ledger's total; the most memory that the process has had.
int64_t tr_engine_arena_peak(const tr_engine *engine);
int64_t tr_engine_space_peak(const tr_engine *engine, tr_space space);
int64_t tr_engine_process_peak(const tr_engine *engine);

#ifdef __cplusplus
}
#endif
#endif
