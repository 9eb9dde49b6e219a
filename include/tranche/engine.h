// The engine: trains a run by its plan, a step at a time or all at once.
//
//     tr_run_open -> tr_engine_create -> tr_engine_step ... -> tr_engine_save
//
// A program that looks at the plan before it takes memory makes it (tr_run_make_plan)
// and hands it to tr_engine_create.
#ifndef TRANCHE_ENGINE_H
#define TRANCHE_ENGINE_H

#include <tranche/check.h>
#include <tranche/run.h>

#ifdef __cplusplus
extern "C" {
#endif

// An engine belongs to the process that has created it. Any of its threads may call it,
// one at a time. TR_USAGE: another thread is in a call of the engine, a function that
// the engine has called calls it, or this is a child of fork(). Such a function may
// call what returns no status (tr_engine_steps_done). The message of TR_INTERNAL ends
// with the place in the source of the check that failed. Every further call then
// returns that error: destroy the engine.
typedef struct tr_engine tr_engine;

// The least, mean and most of a number over the ranks.
typedef struct tr_spread {
    double least, mean, most;
} tr_spread;

// Begin with TR_STEP_RESULT_INIT.
typedef struct tr_step_result {
    size_t size;         // of this struct; the library fills no more
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

#define TR_STEP_RESULT_INIT                                                            \
    {                                                                                  \
        sizeof(tr_step_result), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, false, 0, 0, 0, NULL, \
            NULL, 0, 0, 0, {0, 0, 0}, {0, 0, 0}, {                                     \
            0, 0, 0                                                                    \
        }                                                                              \
    }

// Begin with TR_EVALUATION_INIT.
typedef struct tr_evaluation {
    size_t size; // of this struct; the library fills no more
    double loss;
    double accuracy;
    int64_t samples;
} tr_evaluation;

#define TR_EVALUATION_INIT                                                             \
    { sizeof(tr_evaluation), 0, 0, 0 }

// Allocates all memory of the run, draws or loads the weights, and resumes from a
// checkpoint as the run's options say. `run` and `plan` must outlive the engine; NULL
// for a plan: the engine makes the run's (tr_run_make_plan), and keeps it. The caller
// destroys *out. Collective. TR_BUDGET: the machine has less memory than the plan
// needs. TR_MEMORY. TR_IO: a checkpoint or weights do not fit; the message says why.
// TR_DATA. TR_COMM: the ranks' runs, plans or data differ.
//
// Collective functions return the same status on all ranks. If one rank fails in the
// middle of a step or an evaluation while others wait for it, it also ends their
// communicator (tr_comm_abandon): every later collective call returns that error again.
TR_API tr_status tr_engine_create(tr_run *run, const tr_plan *plan, tr_engine **out,
                                  tr_error *err);
TR_API void tr_engine_destroy(tr_engine *engine); // NULL-safe

// The plan of the steps of the whole batch: the caller's, or the engine's, and then
// valid until the engine is destroyed or a step changes the batch. NULL: no engine.
TR_API const tr_plan *tr_engine_plan(const tr_engine *engine);

// Makes one optimizer step. Collective. Returns TR_OK also if the update is skipped,
// and then fills *result. Writes no metrics and no checkpoints. A step that fails
// changes nothing. TR_USAGE: a struct of an unknown size. TR_INTERRUPTED: a rank asked
// for an end (tr_engine_stop_when), and all ranks drop the step. From the first step
// on, OpenMP's other threads of the calling thread take no signals. The calling thread
// blocks its own while a matrix product runs, so signal handlers run between two
// products.
TR_API tr_status tr_engine_step(tr_engine *engine, tr_step_result *result,
                                tr_error *err);

// ---- a step in parts
//
// For models whose last unit has outputs and no loss: the caller computes the loss of
// each micro-batch, in any way, and hands its gradient back. A step is
//
//     tr_engine_forward, tr_engine_backward   for each of its micro-batches, g times
//     tr_engine_update                        once
//
// Each rank hands over micro-batches of its own. The update takes the mean of the
// gradients of all micro-batches of the step, on all ranks. Each micro-batch counts
// once, however many rows it has; one without rows does not count. If the caller's loss
// is a mean over the rows of the micro-batch, and if g is 1 or batches are full, this
// is the mean over samples.
//
// Calls in another order return TR_USAGE and change nothing. So do all other calls that
// work on the engine during such a step. tr_engine_step, tr_engine_evaluate and
// tr_engine_train return TR_USAGE for such a model. The calls are collective: the ranks
// of a run make them in the same order, and a rank may wait in them for the others.
// After an error other than TR_USAGE and TR_DATA the step is dropped.

enum { TR_OUTPUTS_MAX = 8 };

// Begin with TR_FORWARD_OPTIONS_INIT, then set members.
typedef struct tr_forward_options {
    size_t size; // of this struct
    // The micro-batch: for each tensor of the model's batch, in its order, [rows, ...]
    // of its type. The values are copied. NULL: the next micro-batch of the run's own
    // data. A run with data of its own trains on no others.
    const void *const *inputs;
    // At most the run's micro-batch; ignored without `inputs`. A micro-batch of 0 rows
    // is not computed and does not count: a step may have fewer than the plan.
    int64_t rows;
    // Forward alone, as in an evaluation: nothing random is done, and no gradient comes
    // back. Not during a step. It needs `inputs`.
    bool evaluate;
    bool counts; // 0 rows do, in the mean, as a micro-batch whose loss is 0
    // In place of `inputs`, with "execution.parts_on_device": the same in the memory of
    // the GPU. Nothing writes them any more when the call is made, nor are they read
    // when it returns.
    const void *const *inputs_there;
} tr_forward_options;

#define TR_FORWARD_OPTIONS_INIT                                                        \
    { sizeof(tr_forward_options), NULL, 0, false, false, NULL }

// Output number i of the model (tr_graph_output), for one micro-batch.
typedef struct tr_output {
    const void *data; // [rows, ...], where tr_outputs.device says
    // The type is the one that the run computes in (F32, BF16 or F16), unless an op of
    // the model makes another. shape.dim[0] is `rows`.
    tr_tensor_desc desc;
    bool trained; // it has a gradient: something that is trained leads to it
} tr_output;

// Begin with TR_OUTPUTS_INIT.
typedef struct tr_outputs {
    size_t size;           // of this struct; the library fills no more
    int64_t micro_batch;   // number in its step, from 0
    int64_t micro_batches; // of this rank's step: g, or fewer where own data end
    int64_t rows;          // that are there; of own data at their end also 0
    int count;
    tr_output output[TR_OUTPUTS_MAX]; // [count]
    // The GPU in whose memory the outputs are, and their gradients are to be: its
    // number as CUDA counts, from 0 ("execution.parts_on_device"). -1: the host's.
    int device;
} tr_outputs;

#define TR_OUTPUTS_INIT                                                                \
    {                                                                                  \
        sizeof(tr_outputs), 0, 0, 0, 0, {{NULL, {TR_NONE, {0, {0, 0, 0, 0}}}, false}}, \
            -1                                                                         \
    }

// Runs the model forward on the next micro-batch of the step, and begins a step if
// there is none. Gives views of the outputs in the engine's memory. They are read-only,
// and valid until the next call of the engine. On a GPU they are complete when the call
// returns, in its primary context, and any stream may read them. options: NULL:
// training, from the run's own data. TR_USAGE: earlier outputs wait for their
// gradients, all micro-batches of the step are done, there are more rows than the
// micro-batch has, or inputs are missing. TR_DATA: an id that is out of range; the
// message says where. TR_INTERRUPTED, TR_COMM, TR_INTERNAL.
//
// On several stages of a pipeline ("pipeline.stages") all ranks of a data rank make the
// same calls, with the same rows. Only the stage with the model's last unit hands out
// outputs: the last stage, or with the schedule "v" the first. On the others
// outputs->count is 0, and tr_engine_backward does nothing. A stage may be some calls
// ahead of another. So between calls a rank must not wait for one of another stage.
TR_API tr_status tr_engine_forward(tr_engine *engine, const tr_forward_options *options,
                                   tr_outputs *outputs, tr_error *err);

// Takes the gradients of the micro-batch's loss with respect to its outputs, and runs
// the backward. gradients: [count] of the outputs, each [rows, ...] F32 of that
// output's shape. They are copied. Where the outputs are in a GPU's memory, so are
// they; no work that writes them, or reads outputs, is under way any more when the call
// is made, and nothing reads them any more when it returns. NULL: all zeros, as is that
// of an output that is not trained. If the run computes in 16 bits, they are rounded to
// that type, under the engine's loss scale. loss: the loss of the micro-batch, for the
// step's result and the spike guard. If it is not finite, the update is skipped. 0: it
// is not known. TR_USAGE: no outputs wait for gradients. Other errors as above. On
// ranks without outputs nothing of this is looked at.
TR_API tr_status tr_engine_backward(tr_engine *engine, const float *const *gradients,
                                    double loss, tr_error *err);

// Begin with TR_BACKWARD_OPTIONS_INIT, then set members.
typedef struct tr_backward_options {
    size_t size;                  // of this struct
    const void *const *gradients; // [count] of the outputs
    tr_dtype dtype;               // of all gradients: F32, BF16 or F16
    double loss;
} tr_backward_options;

#define TR_BACKWARD_OPTIONS_INIT                                                       \
    { sizeof(tr_backward_options), NULL, TR_F32, 0 }

// The same with gradients of another type. TR_USAGE also: it is none of these, or a
// struct of an unknown size.
TR_API tr_status tr_engine_backward_with(tr_engine *engine,
                                         const tr_backward_options *options,
                                         tr_error *err);

// Ends the step as tr_engine_step does: combines the gradients of all ranks, decides,
// and updates. In the result, `targets` is the number of micro-batches of all ranks,
// and `loss` is the mean of their losses. `accuracy` is 0, and `seconds` counts from
// the step's first forward. TR_USAGE: micro-batches are missing. TR_INTERRUPTED also: a
// rank has dropped the step.
TR_API tr_status tr_engine_update(tr_engine *engine, tr_step_result *result,
                                  tr_error *err);

// Drops the current step. Nothing has changed, and the next forward begins the step
// anew, from the same data. On several ranks it returns when all others have dropped
// the step or have come to their update. Without a step it does nothing.
// tr_engine_destroy drops the step, too. It does not wait for other ranks, but ends
// their comm (tr_comm_abandon).
TR_API tr_status tr_engine_drop(tr_engine *engine, tr_error *err);

// Asks `stop` between the steps of the plan, on the calling thread, in tr_engine_step
// and tr_engine_evaluate from now on. If it returns true on any rank, the call drops
// its work on all of them and returns TR_INTERRUPTED; the next call begins it again.
// NULL: never. TR_USAGE: no engine.
TR_API tr_status tr_engine_stop_when(tr_engine *engine, bool (*stop)(void *user),
                                     void *user, tr_error *err);

// How many groups of parameters have a learning rate of their own: those of
// "optimizer.groups", in their order, then one of all other parameters.
TR_API size_t tr_engine_groups(const tr_engine *engine);
// Sets the learning rate of a group, counted from 0, for all further updates. It
// replaces the rate that the run file's rate, schedule and rules give. NAN: these hold
// again. Checkpoints do not keep the rate. All ranks set the same. TR_USAGE: no such
// group, or a rate that is below 0 or infinite.
TR_API tr_status tr_engine_set_rate(tr_engine *engine, size_t group, double rate,
                                    tr_error *err);
// Sets how many updates the weights and states have had that the caller has written
// (tr_engine_write). Steps and schedules count from there. Adam corrects the bias of
// its means for so many updates, with the run file's betas. The order of the data does
// not change. All ranks set the same number. TR_USAGE: a number below 0, or a step in
// parts is at work.
TR_API tr_status tr_engine_set_updates(tr_engine *engine, int64_t updates,
                                       tr_error *err);

// Goes back to the weights, optimizer and schedule of the newest good checkpoint in the
// run's out folder, lowers the learning rate and warms it up again, as the run's
// "spike_guard" says. Counts of steps and the order of the data go on. *step: the
// checkpoint's step; -1: there is no checkpoint, and nothing changes. Collective.
// TR_IO: the checkpoint is damaged.
TR_API tr_status tr_engine_rollback(tr_engine *engine, int64_t *step, tr_error *err);

// Allocates memory for a trace. From then on it records when each step of the plan
// runs, anew in each optimizer step, until tr_engine_write_trace. Collective.
// TR_MEMORY.
TR_API tr_status tr_engine_watch(tr_engine *engine, tr_error *err);
// Rank 0 writes the trace of the last step of all ranks, as JSON trace events, which
// ui.perfetto.dev shows. Each rank's time begins with its own step. Collective.
// TR_USAGE: no step has been recorded. TR_IO names the path.
TR_API tr_status tr_engine_write_trace(tr_engine *engine, const char *path,
                                       tr_error *err);

// Computes loss (and accuracy) over the first `samples` validation samples (0: all), in
// their order. Collective. TR_USAGE: the run has no validation data, or a struct of an
// unknown size. TR_DATA, TR_COMM.
TR_API tr_status tr_engine_evaluate(tr_engine *engine, int64_t samples,
                                    tr_evaluation *result, tr_error *err);

// Saves a checkpoint of the last applied update in the run's out folder. Collective.
// TR_IO; TR_NUMBERS: a weight is not finite; TR_COMM.
TR_API tr_status tr_engine_save(tr_engine *engine, tr_error *err);

// Begin with TR_SAVE_OPTIONS_INIT, then set members.
typedef struct tr_save_options {
    size_t size; // of this struct
    // The checkpoint itself. Folders above it are made. A checkpoint that is there is
    // replaced when the new one is complete; anything else is an error. The key
    // "resume" takes it. NULL: one in the run's out folder, as tr_engine_save makes it.
    const char *folder;
    // [byte_count], which become a file of the checkpoint; tr_checkpoint_bytes gives
    // them back. Only those of rank 0 count. NULL: none.
    const void *bytes;
    size_t byte_count;
} tr_save_options;

#define TR_SAVE_OPTIONS_INIT                                                           \
    { sizeof(tr_save_options), NULL, NULL, 0 }

// Saves a checkpoint where the options say. All ranks name the same folder, which all
// of them see. Collective. TR_USAGE: a struct of an unknown size. Errors as above.
TR_API tr_status tr_engine_save_as(tr_engine *engine, const tr_save_options *options,
                                   tr_error *err);

// Where progress is shown. The calls come from the thread that calls tr_engine_train;
// no text has a newline at its end.
typedef struct tr_screen {
    // A line that stays: an evaluation, a checkpoint, and, where there is no live line,
    // a step now and then. NULL: nothing is shown.
    void (*line)(void *user, const char *text);
    // Shows the live line, the newest step, in place of the one before. "" removes it,
    // so that others can write. NULL keeps the one that is there. If the function is
    // NULL, there is no live line.
    void (*live)(void *user, const char *text);
    int (*columns)(void *user); // that a live line may have; NULL: any number
    void *user;
} tr_screen;

// Begin with TR_TRAIN_OPTIONS_INIT, then set members.
typedef struct tr_train_options {
    size_t size; // of this struct
    // Called between the steps of the plan, on the calling thread. If it returns true,
    // the function drops the unfinished step, saves the last update, and returns
    // TR_INTERRUPTED. NULL: never.
    bool (*stop)(void *user);
    void *stop_user;
    tr_screen screen; // of rank 0
    // Writes nothing: no run.json and plan.txt, no metrics, no checkpoints. The run
    // needs no out folder (tr_run_begin). tr_engine_save_as still saves.
    bool no_files;
    // Called on every rank, on the calling thread, after each step, skipped ones too,
    // and after its checkpoint and its evaluation. evaluation: NULL: none was due. The
    // engine is idle meanwhile: the function may read, evaluate, save and set rates, if
    // all ranks do the same. It must not make steps. NULL: nobody is told.
    void (*stepped)(void *user, const tr_step_result *result,
                    const tr_evaluation *evaluation);
    void *stepped_user;
    // Gets each line of metrics.jsonl, without a newline, on rank 0 and the calling
    // thread. With no_files it gets the same lines. NULL: nobody does.
    void (*metrics)(void *user, const char *line);
    void *metrics_user;
} tr_train_options;

#define TR_TRAIN_OPTIONS_INIT                                                          \
    {                                                                                  \
        sizeof(tr_train_options), NULL, NULL, {NULL, NULL, NULL, NULL}, false, NULL,   \
            NULL, NULL, NULL                                                           \
    }

// Trains to the end of the run, as `tranche train` does. It writes run.json (the run as
// resolved) and plan.txt into the out folder, then makes steps, metrics, evaluations
// and checkpoints. With options->no_files it writes nothing; all ranks say the same of
// that. options: NULL: none. Collective. TR_USAGE: a struct of an unknown size.
TR_API tr_status tr_engine_train(tr_engine *engine, const tr_train_options *options,
                                 tr_error *err);

TR_API int64_t tr_engine_steps_done(const tr_engine *engine); // attempts
// In fp16, if the last step was skipped: names the first micro-batch and unit whose
// output is not finite; "": not known. Owned by the engine, valid until the next step.
TR_API const char *tr_engine_blame(const tr_engine *engine);

// The current values of a parameter, by its full name. Owned by the engine, and valid
// until the next step, which may move memory if the batch changes. `count` may be NULL;
// else *count is the number of elements. NULL: there is no such parameter, this rank
// keeps only a part of it (stage 3), or it is used in slices and so lies in several
// places. tr_engine_read gives these, too. At stages 1 and 2 the values that other
// ranks update are those of the last evaluation or of the beginning of the last step.
// tr_engine_refresh makes them current.
TR_API const float *tr_engine_parameter(const tr_engine *engine, const char *name,
                                        int64_t *count);
// The same, also where it is in the memory of a GPU. *device: of which one, as
// tr_outputs has it; -1: the host's. There it is read in the primary context; what the
// engine has computed when a call returns is complete.
TR_API const float *tr_engine_parameter_on(const tr_engine *engine, const char *name,
                                           int64_t *count, int *device);
// At stages 1 and 2, gives every rank the current parameters. Collective. TR_COMM.
TR_API tr_status tr_engine_refresh(tr_engine *engine, tr_error *err);

// ---- tensors
//
// A tensor is named as in files. Its parts are its "values", its "gradient" and the
// optimizer's states, as the optimizer names them ("exp_avg").

typedef struct tr_tensor_info {
    size_t size;      // of this struct: TR_TENSOR_INFO_INIT fills it
    const char *name; // owned by the engine
    // The type of the elements that tr_engine_read gives: F32, whatever the run
    // computes in; for a state of the model its own type, F32 or I64.
    tr_dtype dtype;
    tr_shape shape;
    bool trained;  // it has a gradient and the optimizer's states: it is not frozen
    bool of_model; // a state of the model's own (a running mean), and no parameter
    // Where this rank keeps the values that the update changes, the gradient that it
    // reads, and the optimizer's states.
    tr_space space, gradient_space, optimizer_space;
} tr_tensor_info;

#define TR_TENSOR_INFO_INIT                                                            \
    {                                                                                  \
        sizeof(tr_tensor_info), NULL, TR_NONE, {0, {0, 0, 0, 0}}, false, false,        \
            TR_SPACE_DEVICE, TR_SPACE_DEVICE, TR_SPACE_DEVICE                          \
    }

// The number of tensors, and the description of one by its number from 0. TR_USAGE:
// there is no such tensor, or a struct of an unknown size. Not collective.
TR_API size_t tr_engine_tensors(const tr_engine *engine);
TR_API tr_status tr_engine_tensor(const tr_engine *engine, size_t index,
                                  tr_tensor_info *info, tr_error *err);
// The name of part number `index` of a trained tensor: "values", "gradient", then the
// optimizer's states; NULL after the last. Owned by the engine.
TR_API const char *tr_engine_part(const tr_engine *engine, size_t index);

// Copies elements [first, first + count) of a part of a tensor to values [count], in
// the order of files. All ranks get them, wherever they lie and whichever rank has
// them. A gradient is that of the last step's mean loss, before clipping, also if the
// step was skipped. A step with the learning rate 0 makes gradients and changes
// nothing. Collective: all ranks make the same call. TR_USAGE: no such tensor, part or
// range, a frozen tensor's gradient, or no step has been made; the message says what
// there is. TR_IO: NVMe. TR_COMM.
TR_API tr_status tr_engine_read(tr_engine *engine, const char *name, const char *part,
                                int64_t first, int64_t count, void *values,
                                tr_error *err);
// Sets elements of a part of a tensor to values [count]. If the run keeps values in 16
// bits beside f32, those are rounded from these. The next step computes gradients anew,
// so a written gradient can only be read. Collective: all ranks make the same call with
// the same values, and each keeps its own part. Errors as above. TR_IO also: a frozen
// tensor that is kept in 16 bits alone does not hold a value.
TR_API tr_status tr_engine_write(tr_engine *engine, const char *name, const char *part,
                                 int64_t first, int64_t count, const void *values,
                                 tr_error *err);

// High-water marks, in bytes: of the device arena; of device or host, with what the
// data sets hold there (comparable to the ledger's total); of the process.
TR_API int64_t tr_engine_arena_peak(const tr_engine *engine);
TR_API int64_t tr_engine_space_peak(const tr_engine *engine, tr_space space);
TR_API int64_t tr_engine_process_peak(const tr_engine *engine);

#ifdef __cplusplus
}
#endif
#endif
