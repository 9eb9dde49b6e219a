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

// The least, mean and most of a number over the ranks.
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
    // The smoothed gradient noise scale in samples (McCandlish et al. 2018), and its
    // two parts, tr S and |G|^2. NAN: not known, or not measured.
    double noise_scale, noise_trace, noise_gradient;
    // The spike guard. `spike` names the number that is far outside of its running
    // spread ("loss", "grad_norm", "not_finite"; "": none). `act` says what the guard
    // does ("warn", "skip", "rollback"; "": nothing). A rollback skips the update; the
    // caller then calls tr_engine_rollback.
    const char *spike, *act;
    double loss_scale; // that the gradients were made with
    double seconds;
    double wait_seconds; // of them, spent waiting for data
    // Over the ranks, up to the moment when all ranks have their gradients: seconds,
    // the part of them spent waiting for other ranks, and the peak memory of the
    // process in bytes.
    tr_spread rank_seconds, rank_wait_seconds, rank_peak_bytes;
} tr_step_result;

typedef struct tr_evaluation {
    double loss;
    double accuracy;
    int64_t samples;
} tr_evaluation;

// Allocates all memory of the run, draws or loads the weights, and resumes from a
// checkpoint as the run's options say. `run` and `plan` must outlive the engine. The
// caller destroys *out. Collective. TR_BUDGET: the machine has less memory than the
// plan needs. TR_MEMORY. TR_IO: a checkpoint or weights do not fit; the message says
// why. TR_DATA. TR_COMM: the ranks' runs, plans or data differ.
//
// Collective functions return the same status on all ranks. If one rank fails in the
// middle of a step or an evaluation while others wait for it, it also ends their
// communicator (tr_comm_abandon): every later collective call returns that error again.
tr_status tr_engine_create(tr_run *run, const tr_plan *plan, tr_engine **out,
                           tr_error *err);
void tr_engine_destroy(tr_engine *engine); // NULL-safe

// Makes one optimizer step. Collective. Returns TR_OK also if the update is skipped.
// Writes no metrics and no checkpoints. A step that fails changes nothing.
// TR_INTERRUPTED: a rank asked for an end (`stop` of tr_engine_train), and all ranks
// drop the step. From the first step on, OpenMP's other threads of the calling thread
// take no signals. The calling thread blocks its own while a matrix product runs, so
// signal handlers run between two products.
tr_status tr_engine_step(tr_engine *engine, tr_step_result *result, tr_error *err);

// Goes back to the weights, optimizer and schedule of the newest good checkpoint in the
// run's out folder, lowers the learning rate and warms it up again, as the run's
// "spike_guard" says. Counts of steps and the order of the data go on. *step: the
// checkpoint's step; -1: there is no checkpoint, and nothing changes. Collective.
// TR_IO: the checkpoint is damaged.
tr_status tr_engine_rollback(tr_engine *engine, int64_t *step, tr_error *err);

// Allocates memory for a trace, and from then on records when each step of the plan
// runs: in the next optimizer step, and anew in each one after it, until
// tr_engine_write_trace. Collective. TR_MEMORY.
tr_status tr_engine_watch(tr_engine *engine, tr_error *err);
// Rank 0 writes the trace of the last step, of all ranks, as JSON trace events, which
// ui.perfetto.dev shows. Each rank's time begins with its own step. Collective.
// TR_USAGE: no step has been recorded. TR_IO names the path.
tr_status tr_engine_write_trace(tr_engine *engine, const char *path, tr_error *err);

// Computes loss (and accuracy) over the first `samples` validation samples (0: all), in
// their order. Collective. TR_USAGE: the run has no validation data. TR_DATA, TR_COMM.
tr_status tr_engine_evaluate(tr_engine *engine, int64_t samples, tr_evaluation *result,
                             tr_error *err);

// Saves a checkpoint of the last applied update in the run's out folder. Collective.
// TR_IO; TR_NUMBERS: a weight is not finite; TR_COMM.
tr_status tr_engine_save(tr_engine *engine, tr_error *err);

// Trains until the run's end, as `tranche train` does: writes run.json (the run as
// resolved) and plan.txt into the out folder, then makes steps, metrics, evaluations
// and checkpoints. Collective. Calls `stop` (may be NULL) between the steps of the
// plan. If it returns true, the function drops the unfinished step, saves the last
// update, and returns TR_INTERRUPTED.
tr_status tr_engine_train(tr_engine *engine, bool (*stop)(void *user), void *user,
                          tr_error *err);

int64_t tr_engine_steps_done(const tr_engine *engine); // attempts
// In fp16, if the last step was skipped: the first micro-batch and unit whose output is
// not finite, in words; "": not known. Owned by the engine, valid until the next step.
const char *tr_engine_blame(const tr_engine *engine);

// The current values of a parameter, by its full name. Owned by the engine. `count` may
// be NULL; else *count is the number of elements. NULL: there is no such parameter,
// this rank keeps only a part of it (stage 3), or it is used in slices and so lies in
// several places. At stages 1 and 2 the values that other ranks update are as old as
// the last evaluation or the beginning of the last step; tr_engine_refresh makes them
// current.
const float *tr_engine_parameter(const tr_engine *engine, const char *name,
                                 int64_t *count);
// The name of the model's tensor number `index`, owned by the engine; NULL after the
// last.
const char *tr_engine_parameter_name(const tr_engine *engine, size_t index);
// Sets all elements of a tensor to values [count], in the order of files. Each rank
// keeps its own part, so all ranks must pass the same values. TR_USAGE: no such tensor,
// or another count. TR_IO.
tr_status tr_engine_set_parameter(tr_engine *engine, const char *name,
                                  const float *values, int64_t count, tr_error *err);
// Copies the gradient of the last step's loss (the mean over its targets), before
// clipping, to values [count]. (A step with the learning rate 0 computes gradients and
// changes nothing.) TR_USAGE: there is no such tensor, it is frozen, or its gradient is
// not whole in this process's memory (other ranks or NVMe have it) or is in fixed point
// (reproducible mode).
tr_status tr_engine_gradient(const tr_engine *engine, const char *name, float *values,
                             int64_t count, tr_error *err);
// At stages 1 and 2, gives every rank the current parameters. Collective. TR_COMM.
tr_status tr_engine_refresh(tr_engine *engine, tr_error *err);
// Bytes: the high-water mark of the device arena; the high-water mark of device or
// host, with what the data sets hold there, comparable to the ledger's total; the peak
// memory of the process.
int64_t tr_engine_arena_peak(const tr_engine *engine);
int64_t tr_engine_space_peak(const tr_engine *engine, tr_space space);
int64_t tr_engine_process_peak(const tr_engine *engine);

#ifdef __cplusplus
}
#endif
#endif
