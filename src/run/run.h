// Inside of a run: what its file and options resolve to.
#ifndef TR_RUN_RUN_H
#define TR_RUN_RUN_H

#include "base/log.h"
#include "base/problems.h"
#include "comm/comm.h"
#include "config/config.h"
#include "data/order/batcher.h"
#include "data/order/order.h"
#include "files/checkpoint/companions.h"
#include "files/checkpoint/state.h"
#include "run/given.h"
#include "run/settings.h"

#include <tranche/extend/planner.h>
#include <tranche/run.h>

struct tr_run {
    tr_given given;                 // what the caller has said; all else follows
    char *told_value, *told_origin; // what tr_run_get has returned
    bool resolved;
    tr_config *config; // NULL: what was given has not been read
    tr_comm *comm;     // the caller's, NULL: this process alone
    double opened;     // tr__seconds() at which it began
    tr_log log;        // passes lines on to the caller's messages
    const tr_model *model;
    tr_model *own_model; // NULL: the caller's
    char *weights;       // folder to read them from, NULL: drawn
    char *adapter;       // folder to go on from, NULL: a new adapter, or none
    char *model_folder;  // that the model is described in, NULL: none
    char *tokenizer;     // of data.format "text": a tokenizer.json, or a folder; NULL
    // Of the model before resolve_vocabulary: whether nobody has said its size, and,
    // where its weights are read and the model has changed, how many rows files have of
    // it, and how many of them are tokens (else 0).
    bool vocabulary_open;
    bool vocabulary_fixed; // nothing is trained: the model stays as it is
    bool rows_alone;       // then: no data are opened
    int64_t rows_read, tokens_read;
    tr_dataset *train, *validation;
    bool has_data;        // they are known: a run that is only planned needs none
    bool own_data;        // destroyed with the run
    bool labels_optional; // samples of csv and npy may have none
    bool other_data;      // what --set rules out of the run file is no error
    tr_order order;
    tr_batcher batcher;
    tr_settings settings;
    int sharers; // ranks that compute on this one's device, itself included
    // What each rank of this machine may take of the disk of the folder for NVMe, as it
    // was when the run was opened: later the run's own file, which has no name and ends
    // with the process, lies there, too. TR_UNLIMITED: not known.
    int64_t disk_room;
    int lock; // of the out folder, from tr_run_begin on; -1: none
    tr_plan_request request;
    // What the planner was left to choose: bits of the dimensions, and the values.
    unsigned chosen;
    int64_t choice[TR_DIMENSIONS];
    tr_planned *planned; // NULL: nothing was asked of it, or rank 0 has it
};

// ---- missing.c
// What the run needs and has not been given, a problem each.
void tr__run_ask(const tr_run *run, tr_problems *problems);
// The model and the data alone.
void tr__run_ask_data(const tr_run *run, tr_problems *problems);

// ---- resolve_*.c: each reads its part of the config, and records what it came to.
// Paths that the run file `file` (NULL: none) gives and that are not in the current
// folder, but in the run file's, are taken there; it is said.
tr_status tr__run_find_files(tr_run *run, const char *file, tr_error *err);
tr_status tr__run_resolve_model(tr_run *run, tr_error *err);
// The tokenizer of data.format "text", and the model's vocabulary, which has to hold
// its tokens; called by tr__run_resolve_model.
tr_status tr__run_resolve_vocabulary(tr_run *run, tr_error *err);
// What linear layers have beside them; called by tr__run_resolve_model.
tr_status tr__run_resolve_adapter(tr_run *run, tr_error *err);
// Does each target, and each module to save, name some of the plan's model? TR_USAGE.
tr_status tr__run_check_adapter(const tr_run *run, const tr_plan *plan, tr_error *err);
// What the model is for; called by tr__run_resolve_model. *length: tokens of a text, as
// the model's folder says; 0: it does not.
tr_status tr__run_resolve_task(tr_run *run, int64_t *length, tr_error *err);
// What a contrastive loss has to know of the batch. TR_USAGE: it does not fit.
tr_status tr__run_resolve_groups(tr_run *run, tr_error *err);
tr_status tr__run_resolve_data(tr_run *run, tr_error *err);
// Does the run file say what the samples are?
bool tr__run_names_data(const tr_run *run);
// Has it no data of its own, because its model takes no targets and so has its loss
// outside? The caller hands each micro-batch over.
bool tr__run_is_fed(const tr_run *run);
tr_status tr__run_resolve_batch(tr_run *run, tr_error *err);

// ---- plan_settings.c: the table of what a plan is asked for (planner/settings.h).
// Settings that the run file decides go into the request; those of the batch and what
// is recomputed need more, and are read by tr__run_resolve_batch and _recompute.
void tr__run_read_plan_settings(tr_run *run);
// Records the value of a setting that the user has left open.
struct tr_plan_setting;
tr_status tr__run_record_setting(tr_run *run, const struct tr_plan_setting *setting,
                                 int64_t value, tr_origin origin, const char *why,
                                 tr_error *err);
// Records the batch and its parts, as they follow from each other.
tr_status tr__run_record_batch(tr_run *run, tr_error *err);
// Records what the plan has decided.
tr_status tr__run_resolve_execution(tr_run *run, const tr_plan *plan, tr_error *err);

// Both called by tr__run_resolve_batch.
tr_status tr__run_resolve_placement(tr_run *run, tr_error *err);
// Changes of the batch; before the run's length is known.
tr_status tr__run_resolve_batches(tr_run *run, tr_error *err);
tr_status tr__run_resolve_precision(tr_run *run, tr_error *err);
tr_status tr__run_resolve_recompute(tr_run *run, tr_error *err);
// Which ranks share a node, and how they exchange.
tr_status tr__run_resolve_nodes(tr_run *run, tr_error *err);
// The schedule of the pipeline, and parts of the model on each stage.
tr_status tr__run_resolve_pipeline(tr_run *run, tr_error *err);
// What the file says of them, for several stages. TR_USAGE.
tr_status tr__run_read_pipeline(const tr_run *run, tr_plan_request *out, tr_error *err);
// The latter again, where the machine that is planned for leaves it open: the faster.
void tr__run_choose_exchange(tr_run *run);
// The folder that the file names for NVMe, NULL: none; and what becomes of it once
// something lives there.
const char *tr__run_nvme_folder(const tr_run *run);
tr_status tr__run_resolve_nvme(tr_run *run, tr_error *err);
// Is the folder there, where something may come to live in it? TR_USAGE names the key.
// Looks how much room its disk has.
tr_status tr__run_check_nvme(tr_run *run, tr_error *err);
tr_status tr__run_resolve_optimizer(tr_run *run, tr_error *err);
// Called by tr__run_resolve_optimizer: what is frozen.
tr_status tr__run_resolve_freeze(tr_run *run, tr_error *err);
// The schedule, in the unit that it is given in.
tr_status tr__run_resolve_schedule(tr_run *run, tr_error *err);
// How rates follow the batch; the noise scale.
tr_status tr__run_resolve_stability(tr_run *run, tr_error *err);
// ---- resolve_device.c: the device, where the run file names it
tr_status tr__run_resolve_device(tr_run *run, tr_error *err);
// Can the device update by the optimizer, or does the host?
struct tr_optimizer;
tr_status tr__run_check_updates(const tr_run *run, const struct tr_optimizer *optimizer,
                                tr_error *err);
// Is the device there that the file names? TR_USAGE names the key, and why not.
tr_status tr__run_device_is_here(const tr_run *run, tr_error *err);
// When all else is resolved. Where the file leaves the device open: one beside the host
// that can train the run on all ranks, if there is one; it is said which, or why not.
// Where it names no number, the ranks of a machine take its devices in turn.
// Collective.
tr_status tr__run_choose_device(tr_run *run, tr_error *err);
// What a machine file asks for (target.*).
tr_status tr__run_resolve_target(tr_run *run, const tr_machine *machine, tr_error *err);
// After those before, and when all ranks have come so far: it is collective.
tr_status tr__run_resolve_threads(tr_run *run, tr_error *err);
// How many logits a GPU makes at once. Likewise.
tr_status tr__run_resolve_logits(tr_run *run, tr_error *err);
// Last: it is collective, too. TR_BUDGET:
// no plan fits.
tr_status tr__run_resolve_plan(tr_run *run, tr_error *err);
// Where budgets are given or the planner chose for the first batch: what it chooses for
// a plan of another batch; placement and micro-batch stay. Collective. TR_BUDGET: no
// plan of that batch fits.
tr_status tr__run_choose_again(const tr_run *run, tr_plan_request *plan, tr_error *err);
// What the planner has chosen, for a checkpoint.
void tr__run_keep_choice(const tr_run *run, tr_state_numbers *numbers);
// How many logits it makes at once.
void tr__run_keep_logits(const tr_run *run, tr_state_numbers *numbers);
// And with how many threads the run computes.
void tr__run_keep_threads(const tr_run *run, int threads, tr_state_numbers *numbers);
// Of the checkpoint that the run is going to resume from; false: there is none.
bool tr__run_find_kept(const tr_run *run, tr_state *state);
void tr__settings_clear(tr_settings *settings);

// ---- run.c
// Drops all that was resolved or read; what the caller has said stays.
void tr__run_forget(tr_run *run);
// TR_USAGE: the function is called before the run is resolved, or without one.
tr_status tr__run_need_resolved(const tr_run *run, const char *function, tr_error *err);

// ---- say.c
// An unresolved run of which the same was said. The caller destroys *out.
tr_status tr__run_again(const tr_run *run, tr_run **out, tr_error *err);

// ---- resolve.c
enum {
    TR_OPEN_LABELS_OPTIONAL = 1, // data may have no labels
    TR_OPEN_MODEL_AS_IT_IS = 2,  // nothing is trained: its vocabulary does not grow
    TR_OPEN_OTHER_DATA = 4,      // what was set may give the data another format than
                                 // the file
    TR_OPEN_NO_DATA = 8,         // none are opened: rows come from elsewhere
};

// In place of tr_run_resolve: only what says how data are read and the model computes;
// no batch, no optimizer, no plan. flags: TR_OPEN_... above. Errors as its.
tr_status tr__run_resolve_data_alone(tr_run *run, unsigned flags, tr_error *err);

// ---- idle.c: what the user has given and nothing obeys, each told once. The first: of
// keys that nothing in Tranche obeys; the other: of those that need another.
void tr__run_say_ignored(const tr_run *run);
void tr__run_say_idle(const tr_run *run);

// ---- autos.c
void tr__run_say_autos(const tr_run *run);

// ---- groups.c
// The number of the group that a parameter of this name is of.
int tr__group_of(const tr_settings *settings, const char *name);
// TR_USAGE: a pattern that matches no parameter, with the nearest that would.
tr_status tr__run_check_patterns(const tr_run *run, const tr_plan *plan, tr_error *err);
void tr__run_say_groups(const tr_run *run, const tr_plan *plan);

// ---- left_open.c
// The dimensions that the planner is to choose: a bit for each.
unsigned tr__run_left_open(const tr_run *run);

// ---- budgets.c
enum { TR_ROOM_TOTAL = TR_SPACES };
// What there is of each memory for one rank, TR_UNLIMITED where that is not known.
typedef struct tr_room {
    int64_t bytes[TR_SPACES + 1]; // the last: of device and host in all
    bool one_pool;                // device and host are the same memory
} tr_room;
// machine: of a file; NULL: this one.
tr_room tr__run_room(const tr_run *run, const tr_machine *machine);
// Does the run file say anything of a budget?
bool tr__run_has_budget(const tr_run *run);
// What plans may take: the file's budgets, and of each memory no more than there is for
// a rank. machine: of a file; NULL: this one. say: tells the user what is not as it is
// written.
void tr__run_set_budgets(const tr_run *run, const tr_machine *machine, bool say,
                         tr_planner_request *request);

// ---- levers.c
// What tr__run_levers makes for its requests.
typedef struct tr_run_levers {
    const tr_run *run;
    tr_machine *machine;
    tr_model shorter;
    char layers[96];
    const char *frozen;
} tr_run_levers;

// tr_planner_request.levers; user: a tr_run_levers of a run and zeros, which the
// requests need until tr__run_levers_end.
size_t tr__run_levers(void *user, const tr_planner_request *request,
                      tr_planner_lever *out);
void tr__run_levers_end(tr_run_levers *levers);

// ---- fits.c
// All that the process takes by the plan of the host's memory; where the device has
// none of its own, of the machine's.
int64_t tr__run_process_bytes(const tr_plan *plan);
// TR_BUDGET: the plan needs more memory than the machine has; the message says what
// would fit.
tr_status tr__run_fits(const tr_run *run, const tr_plan *plan, tr_error *err);
// What the rank has of its device's memory, without what every process takes of it: the
// ranks on the device have equal shares.
struct tr_device;
int64_t tr__run_device_memory(const tr_run *run, const struct tr_device *device);

// ---- replan.c
// The plan of another effective batch. The micro-batch and the places of parameters and
// optimizer states stay; what the planner chose besides is chosen anew. Collective.
// TR_BUDGET: it needs more than the run's budgets or the machine's memory.
tr_status tr__run_replan(const tr_run *run, const tr_plan *plan, int64_t batch,
                         tr_plan **out, tr_error *err);

// ---- out_folder.c
// Creates and locks the out folder: two runs in one folder would mix their metrics and
// take each other's checkpoints. TR_IO: another run holds it.
tr_status tr__run_take_folder(tr_run *run, tr_error *err);
// Writes run.json (with what the plan has decided) and plan.txt to the out folder.
tr_status tr__run_write(tr_run *run, const tr_plan *plan, tr_error *err);

// ---- predict.c
// The seconds of a step, on rank 0, as predicted for the caller's machine, or for this
// one where the cache has it as measured; 0: not known. Collective. TR_COMM, TR_MEMORY,
// and the errors of tr_plan_make.
tr_status tr__run_predict(const tr_run *run, const tr_plan *plan, double *seconds,
                          tr_error *err);

// ---- announce.c
// Says what the run will do. Defaults that change the training are said, so that nobody
// is surprised by them. seconds: of a step, predicted; 0: not known.
void tr__run_announce(const tr_run *run, const tr_plan *plan, double seconds);

// ---- companions.c
// Opens, on rank 0, the files that go into every checkpoint.
tr_status tr__run_open_companions(const tr_run *run, tr_companions *out, tr_error *err);

// ---- differs.c
// Says which keys are others than those of the run that a checkpoint is of, as far as
// its out folder tells.
tr_status tr__run_say_changes(const tr_run *run, const char *checkpoint, tr_error *err);

// ---- agree.c
// Whether all ranks run the same run by plans that fit together. TR_COMM names what
// differs, with both values. Collective.
tr_status tr__run_agree(const tr_run *run, const tr_plan *plan, tr_error *err);

// ---- asking
const tr_settings *tr__run_settings(const tr_run *run);
tr_dataset *tr__run_train_data(const tr_run *run);
tr_dataset *tr__run_validation_data(const tr_run *run); // NULL: none
const tr_order *tr__run_order(const tr_run *run);
const tr_batcher *tr__run_batcher(const tr_run *run);
const char *tr__run_weights(const tr_run *run); // NULL: to be drawn
bool tr__run_is_own(const tr_run *run); // the model or the data are the program's own
const tr_log *tr__run_log(const tr_run *run);
tr_comm *tr__run_comm(const tr_run *run);  // NULL: this process alone
double tr__run_seconds(const tr_run *run); // since it was opened

#endif
