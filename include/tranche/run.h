// A run: a run file, the caller's changes to it, and what they resolve to.
#ifndef TRANCHE_RUN_H
#define TRANCHE_RUN_H

#include <tranche/data.h>
#include <tranche/model.h>
#include <tranche/plan.h>

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

// What a program gives a run beside text. Begin with TR_RUN_PARTS_INIT, then set
// members. NULL: not given.
typedef struct tr_run_parts {
    size_t size;          // of this struct
    struct tr_comm *comm; // ranks; NULL: this process alone. It must outlive the run
    // The machine that the planner plans for, in place of this one as measured. If the
    // run file gives no budget, the machine's memory is the budget. It must outlive the
    // run.
    const tr_machine *machine;
    // Model and data of the caller, in place of the file's. The caller keeps them; they
    // must outlive the run.
    const tr_model *model;
    tr_dataset *train, *validation;
    tr_messages messages;
    // Called now and then while text is tokenized. If it returns true, tr_run_resolve
    // ends with TR_INTERRUPTED. NULL: the call is not interrupted.
    bool (*stop)(void *user);
    void *stop_user;
} tr_run_parts;

#define TR_RUN_PARTS_INIT                                                              \
    { sizeof(tr_run_parts), NULL, NULL, NULL, NULL, NULL, {NULL, NULL}, NULL, NULL }

// A run is made in steps. Until it is resolved, the caller sets it up, in any order. A
// call that fails changes nothing, and the run stays usable. Not collective, but for
// tr_run_resolve.
//
//     tr_run_create -> tr_run_load_file, tr_run_set, tr_run_give ... -> tr_run_resolve
//
// tr_run_open does all of these in one call.

// An empty run. The caller destroys *out. TR_MEMORY.
TR_API tr_status tr_run_create(tr_run **out, tr_error *err);
TR_API void tr_run_destroy(tr_run *run); // NULL-safe

// Reads a run file (docs/run-file.md), or takes its text; a run has one of these, or
// none. What is in it is checked when the run is resolved. TR_USAGE: the file cannot be
// read, the run has one already, or it is resolved. TR_MEMORY.
TR_API tr_status tr_run_load_file(tr_run *run, const char *path, tr_error *err);
TR_API tr_status tr_run_load_text(tr_run *run, const char *text, tr_error *err);

// Sets a key ("zero_optimization.stage") to a value, over what the file says. The last
// value of a key counts. The value is JSON ("3", "[0.9, 0.95]", "true"), or plain text
// if it is not JSON ("gpt2"); "null" leaves the key out. Keys of the call
// (docs/run-file.md: resume, ranks, plan_only, ...) are set here and are errors in a
// file. The value is checked when the run is resolved. TR_USAGE: there is no such key,
// and the message names the nearest; or the run is resolved. TR_MEMORY.
TR_API tr_status tr_run_set(tr_run *run, const char *key, const char *value,
                            tr_error *err);
// The same for "KEY.PATH=VALUE", as `tranche --set` takes it.
TR_API tr_status tr_run_assign(tr_run *run, const char *assignment, tr_error *err);
// As tr_run_set; the value is text even where it looks like JSON: a path, a name.
TR_API tr_status tr_run_set_text(tr_run *run, const char *key, const char *text,
                                 tr_error *err);
// Adds a text to a list (data.train). The first call begins a new list, as does the
// first call after the key has been set.
TR_API tr_status tr_run_add_text(tr_run *run, const char *key, const char *text,
                                 tr_error *err);
// Names the source of the values that are set from now on ("command line"). Messages
// and run.json use this name. At first it is "set". TR_MEMORY.
TR_API tr_status tr_run_name_source(tr_run *run, const char *source, tr_error *err);

// Gives the run what text cannot express; the members are copied. A second call
// replaces all that the first one gave. TR_USAGE: a struct of an unknown size, a model
// whose rewrites were compiled with the headers of another version, or the run is
// resolved.
TR_API tr_status tr_run_give(tr_run *run, const tr_run_parts *parts, tr_error *err);

// A key's value as JSON ("\"auto\"": nothing has decided it yet; NULL: it has none),
// and where it is from: "file", "set" or another source, "default", "auto: planner",
// "derived: ...". Both are the run's and valid until its next call; each may be NULL.
// Before the run is resolved, this is what file and calls say. TR_USAGE: there is no
// such key, or something is wrong in the file.
TR_API tr_status tr_run_get(tr_run *run, const char *key, const char **value,
                            const char **origin, tr_error *err);

// Resolves the run: reads model and data, and lets the planner choose what is open;
// rank 0 chooses for all ranks. Once it has returned TR_OK, the run no longer changes.
// After an error the caller may set other values and call it again. Collective if the
// run has ranks: all get the error of one. TR_USAGE: all that is wrong, a line each,
// with file and key. TR_BUDGET: no plan fits the budgets; the message has the nearest
// plans. TR_DATA, TR_IO: the data or the model's folder cannot be used. TR_INTERRUPTED,
// TR_MEMORY, TR_COMM.
TR_API tr_status tr_run_resolve(tr_run *run, tr_error *err);

// A resolved run in one call: of the text of a run file (NULL: none), settings over it
// ("KEY.PATH=VALUE", as tr_run_assign takes them, NULL behind the last; NULL: none) and
// parts (NULL: none). The caller destroys *out; after an error there is no run.
// Collective if the run has ranks. The errors of tr_run_load_text, tr_run_assign,
// tr_run_give and tr_run_resolve.
TR_API tr_status tr_run_open(const char *text, const char *const *settings,
                             const tr_run_parts *parts, tr_run **out, tr_error *err);

// The functions below need a resolved run. Without one, those that return a status
// return TR_USAGE, the others 0 or NULL.

// Makes the plan of the run's steps. As tr_plan_make: it takes no tensor memory, the
// caller destroys *out, and the run must outlive it. Not collective.
TR_API tr_status tr_run_make_plan(const tr_run *run, tr_plan **out, tr_error *err);
// tr_plan_print and tr_plan_print_json, with the planner's choice. TR_IO, TR_MEMORY.
TR_API tr_status tr_run_print_plan(const tr_run *run, const tr_plan *plan,
                                   const tr_sink *to, tr_error *err);
TR_API tr_status tr_run_print_plan_json(const tr_run *run, const tr_plan *plan,
                                        const tr_sink *to, tr_error *err);
// As tr_plan_check_memory, for all ranks of this machine. TR_BUDGET: the message also
// says what would fit.
TR_API tr_status tr_run_check_memory(const tr_run *run, const tr_plan *plan,
                                     tr_error *err);

// A row of tr_run_compare: what the run's step would take with another ZeRO stage,
// other places of its states, and another wave.
typedef struct tr_compared {
    size_t size; // of this struct; the library fills no more
    int stage;
    // Where the optimizer's states and the parameters live.
    tr_space optimizer, parameters;
    int64_t wave;
    bool own;                 // it is what the run has
    bool possible;            // there is such a plan
    int64_t bytes[TR_SPACES]; // of its ledger
    double seconds;           // of a step, predicted; NAN: not known
    const char *over;         // which memory it exceeds, "over the disk"; NULL: none
    const char *why;          // why there is no such plan, or no time; ""
} tr_compared;

// Makes the plans of all stages, places and some waves, and hands each to `take`, which
// reads it during the call. machine: one that a file describes; times are predicted for
// it, and its memory counts. NULL: this machine, and no times. Not collective.
// TR_MEMORY, and the errors of tr_plan_make and tr_simulate.
TR_API tr_status tr_run_compare(const tr_run *run, const tr_machine *machine,
                                void (*take)(void *user, const tr_compared *row),
                                void *user, tr_error *err);

// This machine, as measured for the run's model and ranks: what tr_simulate and
// tr_run_parts.machine take. If the user's cache has no measurements for these, the
// function says so in a note and measures for some seconds. A reproducible run gets the
// fixed figures of a typical machine. The caller closes *out. Collective. TR_MEMORY,
// TR_COMM, and the errors of tr_plan_make.
TR_API tr_status tr_run_machine(const tr_run *run, tr_machine **out, tr_error *err);
// The same, but always measures, even if the cache has figures or the run is
// reproducible. The result goes into the cache. The caller closes *out. Collective.
// TR_MEMORY, TR_COMM, and the errors of tr_plan_make.
TR_API tr_status tr_run_calibrate(const tr_run *run, tr_machine **out, tr_error *err);

TR_API const tr_model *tr_run_model(const tr_run *run);
TR_API int64_t tr_run_steps(const tr_run *run); // optimizer steps in all
TR_API int64_t tr_run_ranks(const tr_run *run); // that it is planned for
// Validation samples of one evaluation. 0: there are none, or the data of a plan are
// not there and "evaluation.samples" does not say how many.
TR_API int64_t tr_run_evaluated(const tr_run *run);

// The training data: the caller's, or owned by the run. In the second case, read them
// before an engine is created, or without one. NULL: there are none.
TR_API tr_dataset *tr_run_data(const tr_run *run);
// The number in tr_run_data of the sample that is trained at this position of this
// epoch, both from 0. -1: there is none.
TR_API int64_t tr_run_sample(const tr_run *run, int64_t epoch, int64_t position);
// Where the tokenizer of the data is, as tr_tokenizer_load takes it. NULL: there is
// none.
TR_API const char *tr_run_tokenizer(const tr_run *run);

// Makes the out folder, locks it for this run until tr_run_destroy, and says what the
// run is going to do. It changes no file that is in the folder. Collective. TR_BUDGET:
// the plan needs more memory than the machine has. TR_IO names the path: it cannot be
// made, or another run uses it (file systems without locks do not show this). TR_COMM:
// the ranks' runs, plans or data differ.
TR_API tr_status tr_run_begin(tr_run *run, const tr_plan *plan, tr_error *err);

// A key that a run file may have, from the tables that the reader of run files uses.
// Begin with TR_RUN_KEY_INIT. The library owns all texts, which never change.
enum { TR_RUN_KEY_TAKES_MAX = 1024 };
typedef struct tr_run_key {
    size_t size;      // of this struct
    const char *path; // "optimizer.params.lr"; a star stands for each element of a list
    const char *doc;  // what it means, or why it has no effect
    const char *fallback; // its default as JSON; NULL: none
    // The texts that it takes, NULL behind the last; NULL: any, or it takes no text.
    const char *const *choices;
    // The key exists only if the text of the key `where_key` is one of `where`, NULL
    // behind the last; NULL: always. Another row may have the same path.
    const char *where_key;
    const char *const *where;
    bool works;                       // false: the key is accepted and has no effect
    bool takes_bool;                  // true or false
    bool takes_auto;                  // "auto"
    char takes[TR_RUN_KEY_TAKES_MAX]; // in words: "an integer from 1 to 65536"
    // Of a key that works and that DeepSpeed has, too: "same", or "differs: " and how.
    // NULL: DeepSpeed has no such key.
    const char *deepspeed;
    const char *since; // the first version that has the key: "0.1.0"
} tr_run_key;

#define TR_RUN_KEY_INIT                                                                \
    {                                                                                  \
        sizeof(tr_run_key), NULL, NULL, NULL, NULL, NULL, NULL, false, false, false,   \
            "", NULL, NULL                                                             \
    }

// Writes key number `index` of run files, in the order of run.json, into `out`, whose
// size is set. false: there are no more, or the size is unknown. May be called at any
// time.
TR_API bool tr_run_key_at(size_t index, tr_run_key *out);

#ifdef __cplusplus
}
#endif
#endif
