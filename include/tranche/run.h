// A run: a run file, the command line's changes to it, and what they resolve to.
#ifndef TRANCHE_RUN_H
#define TRANCHE_RUN_H

#include <tranche/data.h>
#include <tranche/model.h>
#include <tranche/planner.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tr_run tr_run;

typedef enum tr_message_level { TR_MESSAGE_NOTE, TR_MESSAGE_WARNING } tr_message_level;

// Where a run's notes and warnings go; lines carry no newline.
typedef struct tr_messages {
    void (*write)(void *user, tr_message_level level,
                  const char *line); // NULL: nowhere
    void *user;
} tr_messages;

// The function reads all texts during the call only. Zero or NULL means: not given.
typedef struct tr_run_options {
    const char *file;       // a run file
    const char *text;       // or its text
    const char *const *set; // "KEY.PATH=VALUE"
    size_t set_count;
    const char *const *data; // in place of data.train
    size_t data_count;
    const char *model;   // a name, a config.json, or a folder, in place of "model"
    const char *out;     // in place of "out"
    int64_t steps;       // in place of "steps"; 0: as the file says
    const int64_t *seed; // in place of "seed"; NULL: as the file says
    int64_t threads;     // in place of "execution.threads"; 0: as the file says
    const char *resume;  // "auto" (default), "never", a checkpoint folder, or an out
                         // folder, whose latest checkpoint is meant
    const char *trace;   // tr_engine_train writes the trace of a step there; NULL: none
    int64_t trace_step;  // of the steps of this process: which, from 1; 0: the second,
                         // or the only one
    int64_t ranks;       // to plan for; 0: those there are
    struct tr_comm *comm; // ranks; NULL: this process alone. Borrowed
    // The machine that the planner plans for, in place of this one as measured. If the
    // run file gives no budget, the machine's memory is the budget. Borrowed during the
    // call.
    const tr_machine *machine;
    // If the run file leaves "device" open, the run computes on the first GPU if there
    // is one that can train it. false: on the CPU, where tr_engine_parameter reaches
    // parameters.
    bool choose_device;
    // The run will compute on this machine: a device that its file names must be there.
    // TR_USAGE: it is not.
    bool computes_here;
    bool plan_only; // no weights and no data are needed: the data may be missing
    // Model and data of the caller, in place of the file's. The caller keeps them; they
    // must outlive the run.
    const tr_model *own_model;
    tr_dataset *own_train, *own_validation;
    tr_messages messages;
    // Called now and then while text is tokenized. If it returns true, the call ends
    // with TR_INTERRUPTED. NULL: the call is not interrupted.
    bool (*stop)(void *user);
    void *stop_user;
} tr_run_options;

// Reads a run file and resolves it. The planner chooses what the file leaves open; rank
// 0 chooses for all ranks. The caller closes *out. Collective if the options name
// ranks: all ranks get the error of one. TR_USAGE names file and key, and the nearest
// known key. TR_BUDGET: no plan fits the budgets; the message has the nearest plans.
// TR_DATA, TR_IO: the data or the model's folder cannot be used.
tr_status tr_run_open(const tr_run_options *options, tr_run **out, tr_error *err);
void tr_run_close(tr_run *run); // NULL-safe

// The request that tr_plan_make takes. Owned by the run.
const tr_plan_request *tr_run_plan_request(const tr_run *run);
// The planner's choice, owned by the run. NULL: the run asked the planner for nothing,
// or this is not rank 0.
const tr_planned *tr_run_planned(const tr_run *run);
// tr_plan_print and tr_plan_print_json, with the planner's choice. TR_IO, TR_MEMORY.
tr_status tr_run_print_plan(const tr_run *run, const tr_plan *plan, FILE *to,
                            tr_error *err);
tr_status tr_run_print_plan_json(const tr_run *run, const tr_plan *plan, FILE *to,
                                 tr_error *err);
// This machine, as measured for the run's model and ranks: what tr_simulate and
// tr_run_options.machine take. If the user's cache has no measurements for these, the
// function says so in a note and measures for some seconds. A reproducible run gets the
// fixed figures of a typical machine. The caller closes *out. Collective. TR_MEMORY,
// TR_COMM, and the errors of tr_plan_make.
tr_status tr_run_machine(const tr_run *run, tr_machine **out, tr_error *err);

const tr_model *tr_run_model(const tr_run *run);
int64_t tr_run_steps(const tr_run *run); // optimizer steps in all

// Makes the out folder, locks it for this run until tr_run_close, and says what the run
// is going to do. It changes no file that is in the folder. Collective. TR_BUDGET: the
// plan needs more memory than the machine has. TR_IO names the path: it cannot be made,
// or another run uses it (file systems without locks do not show this). TR_COMM: the
// ranks' runs, plans or data differ.
tr_status tr_run_begin(tr_run *run, const tr_plan *plan, tr_error *err);

#ifdef __cplusplus
}
#endif
#endif
