#include "run/run.h"

#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/text.h"
#include "comm/alone.h"
#include "plan/plan.h"
#include "plan/print.h"
#include "run/keys.h"

#include <tranche/checkpoint.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OVERRIDES_MAX = 256 };

// One rank speaks.
static void pass_on(void *user, tr_log_level level, const char *line) {
    const tr_run *run = user;
    const tr_messages *messages = &run->messages;
    if (messages->write && tr__comm_leads(run->comm)) {
        messages->write(messages->user,
                        level == TR_LOG_WARNING ? TR_MESSAGE_WARNING : TR_MESSAGE_NOTE,
                        line);
    }
}

enum { OPTIONS = 8, NUMBER_TEXT = 24 }; // of the command line that stand for a key

typedef struct overrides {
    tr_config_override all[OVERRIDES_MAX];
    char numbers[OPTIONS][NUMBER_TEXT];
    size_t count, number_count;
} overrides;

static void add_text(overrides *o, const char *key, const char *value) {
    if (value) {
        o->all[o->count++] = (tr_config_override){
            .key = key, .value = value, .literal = true, .origin = TR_ORIGIN_COMMAND};
    }
}

static void add_number(overrides *o, const char *key, int64_t value) {
    char *text = o->numbers[o->number_count++];
    snprintf(text, NUMBER_TEXT, "%lld", (long long)value);
    o->all[o->count++] =
        (tr_config_override){.key = key, .value = text, .origin = TR_ORIGIN_COMMAND};
}

static void add_paths(overrides *o, const char *key, const char *const *paths,
                      size_t count) {
    for (size_t i = 0; i < count; i++) {
        add_text(o, key, paths[i]);
        o->all[o->count - 1].append = true;
    }
}

// The command line's options as overrides of keys, after those of --set.
static void add_options(overrides *all, const tr_run_options *o) {
    for (size_t i = 0; i < o->set_count; i++) {
        all->all[all->count++] =
            (tr_config_override){.value = o->set[i], .origin = TR_ORIGIN_SET};
    }
    add_paths(all, "data.train", o->data, o->data_count);
    add_text(all, "model", o->model);
    add_text(all, "out", o->out);
    if (o->seed) {
        add_number(all, "seed", *o->seed);
    }
    if (o->threads > 0) {
        add_number(all, "execution.threads", o->threads);
    }
    if (o->steps > 0) {
        add_number(all, "steps", o->steps);
        // Of the two, run.json has the one that counts.
        all->all[all->count++] = (tr_config_override){
            .key = "epochs", .value = "null", .origin = TR_ORIGIN_COMMAND};
    }
}

static tr_status open_config(tr_run *run, const tr_run_options *o, tr_error *err) {
    overrides all = {.count = 0};
    if (o->set_count + o->data_count + OPTIONS > OVERRIDES_MAX) {
        return tr_fail(err, TR_USAGE, "more than %d options", OVERRIDES_MAX - OPTIONS);
    }
    add_options(&all, o);
    for (size_t i = 0; i < o->set_count; i++) { // they come first
        all.all[i].rules_out = run->other_data;
    }
    return o->text
               ? tr__config_parse("run", o->text, strlen(o->text), tr__key_tables,
                                  TR_KEY_TABLES, all.all, all.count, &run->config, err)
               : tr__config_open(o->file, tr__key_tables, TR_KEY_TABLES, all.all,
                                 all.count, &run->config, err);
}

// Keeps what is wrong, for the user to mend together with the rest. Returns whether
// all is well so far.
static bool keep(tr_problems *problems, tr_error *found) {
    bool good = found->status == TR_OK;
    tr__problems_add(problems, found);
    *found = (tr_error){0};
    return good;
}

// Each part that what it builds upon allows.
static tr_status resolve(tr_run *run, const tr_run_options *options, tr_error *err) {
    tr_problems problems = {0};
    tr_error found = {0};
    tr__run_ask(run, options, &problems);
    if (problems.count == 0) {
        tr__run_resolve_device(run, &found);
        if (keep(&problems, &found) && options->computes_here) {
            tr__run_device_is_here(run, &found);
        }
        bool here = keep(&problems, &found), model = false, batch = false;
        if (here) { // else nothing is to be said before
            tr__run_resolve_model(run, options, &found);
            model = keep(&problems, &found);
        }
        if (model) {
            tr__run_resolve_data(run, options, &found);
            keep(&problems, &found);
            tr__run_resolve_batch(run, options, &found);
            batch = keep(&problems, &found);
        }
        tr__run_resolve_precision(run, &found);
        keep(&problems, &found);
        if (batch) {
            tr__run_resolve_optimizer(run, &found);
            keep(&problems, &found);
        }
    }
    if (problems.count == 0) {
        tr__run_resolve_stability(run, &found);
        keep(&problems, &found);
        if (options->machine) {
            tr__run_resolve_target(run, options->machine, &found);
            keep(&problems, &found);
        }
    }
    return tr__problems_end(&problems, err);
}

// A folder that --resume names is a checkpoint, or an out folder with one in it.
static tr_status resolve_resume(const char *asked, char **out, tr_error *err) {
    static const char *const words[] = {"auto", "never"};
    char folder[PATH_MAX], state[PATH_MAX];
    struct stat info;
    tr_status status = TR_OK;
    bool word = strcmp(asked, words[0]) == 0 || strcmp(asked, words[1]) == 0;
    snprintf(folder, sizeof folder, "%s", asked);
    if (!word && (stat(asked, &info) != 0 || !S_ISDIR(info.st_mode))) {
        const char *near = tr__nearest(asked, words, 2);
        return tr_fail(err, TR_USAGE,
                       "--resume %.200s: no such folder; give auto, never, or a "
                       "checkpoint's folder%s%s%s",
                       asked, near ? "; did you mean " : "", near ? near : "",
                       near ? "?" : "");
    }
    if (!word) {
        status = tr__path_join(state, sizeof state, asked, "state.json", err);
    }
    if (!word && status == TR_OK && access(state, F_OK) != 0) {
        status = tr_checkpoint_locate(asked, folder, sizeof folder, err);
        if (status == TR_OK && strcmp(folder, asked) == 0) {
            status = tr_fail(err, TR_IO,
                             "%.300s: is no checkpoint, since it has no state.json: "
                             "there is nothing to resume. To start from its weights, "
                             "give it as the model (--model), without --resume",
                             asked);
        }
    }
    if (status != TR_OK) {
        return status;
    }
    *out = tr__strdup(folder);
    return *out ? TR_OK : tr_fail(err, TR_MEMORY, "no memory for a run");
}

static tr_status resolve_folders(tr_run *run, const tr_run_options *options,
                                 tr_error *err) {
    tr_settings *settings = &run->settings;
    settings->out = tr__strdup(tr__config_text(run->config, "out"));
    if (!settings->out) {
        return tr_fail(err, TR_MEMORY, "no memory for a run");
    }
    tr_status status = resolve_resume(options->resume ? options->resume : "auto",
                                      &settings->resume, err);
    if (status != TR_OK) {
        return status;
    }
    if (options->trace_step > 0 && !options->trace) {
        return tr_fail(err, TR_USAGE,
                       "--trace-step has no effect without --trace: give both");
    }
    settings->trace_step = options->trace_step;
    settings->trace = options->trace ? tr__strdup(options->trace) : NULL;
    if (options->trace && !settings->trace) {
        return tr_fail(err, TR_MEMORY, "no memory for a run");
    }
    bool bf16 = strcmp(tr__config_text(run->config, "checkpoint.dtype"), "bf16") == 0;
    settings->checkpoint_dtype = bf16 ? TR_BF16 : TR_F32;
    return TR_OK;
}

static void begin_run(tr_run *run, const tr_run_options *options) {
    run->opened = tr__seconds();
    run->lock = -1;
    run->sharers = 1;
    run->comm = options->comm;
    run->messages = options->messages;
    run->log = (tr_log){pass_on, run};
}

static tr_status open_run(tr_run *run, const tr_run_options *options, tr_error *err) {
    begin_run(run, options);
    tr_status status = open_config(run, options, err);
    if (status == TR_OK) {
        status = tr__run_find_files(run, options->file, err);
    }
    if (status == TR_OK) {
        tr__config_read_fields(run->config, &run->settings);
        status = resolve_folders(run, options, err);
    }
    return status == TR_OK ? resolve(run, options, err) : status;
}

tr_status tr__run_open_data(const tr_run_options *options, unsigned flags, tr_run **out,
                            tr_error *err) {
    tr_run *run = tr__calloc(1, sizeof *run);
    if (!run) {
        return tr_fail(err, TR_MEMORY, "no memory for a run");
    }
    begin_run(run, options);
    run->labels_optional = flags & TR_OPEN_LABELS_OPTIONAL;
    run->vocabulary_fixed = flags & TR_OPEN_MODEL_AS_IT_IS;
    run->other_data = flags & TR_OPEN_OTHER_DATA;
    tr_problems missing = {0};
    tr_status status = open_config(run, options, err);
    if (status == TR_OK) {
        tr__run_ask_data(run, options, &missing);
        status = tr__problems_end(&missing, err);
    }
    if (status == TR_OK) {
        tr__config_read_fields(run->config, &run->settings);
        status = tr__run_resolve_model(run, options, err);
    }
    if (status == TR_OK) {
        status = tr__run_resolve_data(run, options, err);
    }
    if (status == TR_OK) {
        status = tr__run_resolve_precision(run, err);
    }
    if (status == TR_OK) {
        status = tr__run_resolve_device(run, err);
    }
    if (status != TR_OK) {
        tr_run_close(run);
        return status;
    }
    *out = run;
    return TR_OK;
}

tr_status tr_run_open(const tr_run_options *options, tr_run **out, tr_error *err) {
    tr_run *run = tr__calloc(1, sizeof *run);
    tr_error mine = {0};
    tr_status status = run ? open_run(run, options, &mine)
                           : tr_fail(&mine, TR_MEMORY, "no memory for a run");
    status = tr__agree(options->comm, status, &mine, err);
    if (status == TR_OK) {
        status = tr__run_choose_device(run, options, err);
    }
    if (status == TR_OK) {
        status = tr__run_resolve_threads(run, options, err);
    }
    if (status == TR_OK) {
        status = tr__run_resolve_plan(run, options, err);
    }
    if (status == TR_OK) {
        status = tr__config_settle(run->config, &mine);
        status = tr__agree(options->comm, status, &mine, err);
    }
    if (status != TR_OK) {
        tr_run_close(run);
        return status;
    }
    tr__run_say_ignored(run);
    tr__run_say_idle(run);
    *out = run;
    return TR_OK;
}

void tr__settings_clear(tr_settings *settings) {
    for (size_t g = 0; g < settings->group_count; g++) {
        tr__patterns_clear(&settings->groups[g].match);
    }
    tr__free(settings->groups);
    tr__patterns_clear(&settings->freeze);
    tr__free(settings->batches.changes);
    tr__free(settings->out);
    tr__free(settings->nvme_path);
    tr__free(settings->resume);
    tr__free(settings->trace);
    *settings = (tr_settings){0};
}

void tr_run_close(tr_run *run) {
    if (!run) {
        return;
    }
    if (run->own_data) {
        tr_dataset_destroy(run->validation);
        tr_dataset_destroy(run->train);
    }
    tr_model_destroy(run->own_model);
    tr_planned_destroy(run->planned);
    tr__settings_clear(&run->settings);
    tr__config_destroy(run->config);
    tr__free(run->weights);
    tr__free(run->model_folder);
    tr__free(run->tokenizer);
    if (run->lock >= 0) {
        close(run->lock);
    }
    tr__free(run);
}

// ---- asking

const tr_plan_request *tr_run_plan_request(const tr_run *run) {
    return &run->request;
}

const tr_planned *tr_run_planned(const tr_run *run) {
    return run->planned;
}

tr_status tr_run_print_plan(const tr_run *run, const tr_plan *plan, FILE *to,
                            tr_error *err) {
    tr_status status = tr__run_check_patterns(run, plan, err);
    if (status == TR_OK) {
        status = tr_plan_print(plan, to, err);
    }
    return status == TR_OK && run->planned ? tr_planned_print(run->planned, to, err)
                                           : status;
}

tr_status tr_run_print_plan_json(const tr_run *run, const tr_plan *plan, FILE *to,
                                 tr_error *err) {
    tr_status status = tr__run_check_patterns(run, plan, err);
    if (status != TR_OK) {
        return status;
    }
    tr_json_writer w = tr__json_writer(to);
    tr__json_open(&w, '{');
    if (run->planned) {
        tr__json_line(&w, 2);
        tr__json_key(&w, "planner");
        status = tr_planned_print_json(run->planned, to, err);
        w.comma = true; // after what was written beside the writer
    }
    status = status == TR_OK ? tr__plan_write_members(plan, &w, err) : status;
    tr__json_line(&w, 0);
    tr__json_close(&w, '}');
    fputc('\n', to);
    return status;
}

const tr_model *tr_run_model(const tr_run *run) {
    return run->model;
}

int64_t tr_run_steps(const tr_run *run) {
    return run->settings.steps;
}

const tr_settings *tr__run_settings(const tr_run *run) {
    return &run->settings;
}

tr_dataset *tr__run_train_data(const tr_run *run) {
    return run->train;
}

tr_dataset *tr__run_validation_data(const tr_run *run) {
    return run->validation;
}

const tr_order *tr__run_order(const tr_run *run) {
    return &run->order;
}

const tr_batcher *tr__run_batcher(const tr_run *run) {
    return &run->batcher;
}

const char *tr__run_weights(const tr_run *run) {
    return run->weights;
}

bool tr__run_is_own(const tr_run *run) {
    return !run->own_model || !run->own_data;
}

double tr__run_seconds(const tr_run *run) {
    return tr__seconds() - run->opened;
}

const tr_log *tr__run_log(const tr_run *run) {
    return &run->log;
}

tr_comm *tr__run_comm(const tr_run *run) {
    return run->comm;
}
