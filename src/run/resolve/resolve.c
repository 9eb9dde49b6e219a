// From what the caller has said to a run: each part that what it builds upon allows,
// and all that is wrong together.
#include "base/arguments.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/problems.h"
#include "base/text.h"
#include "comm/alone.h"
#include "files/deepspeed/deepspeed.h"
#include "run/run.h"

#include <tranche/checkpoint.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// Keeps what is wrong, for the user to mend together with the rest. Returns whether
// all is well so far.
static bool keep(tr_problems *problems, tr_error *found) {
    bool good = found->status == TR_OK;
    tr__problems_add(problems, found);
    *found = (tr_error){0};
    return good;
}

// Each part that what it builds upon allows.
static tr_status resolve_keys(tr_run *run, tr_error *err) {
    tr_problems problems = {0};
    tr_error found = {0};
    tr__run_ask(run, &problems);
    if (problems.count == 0) {
        tr__run_resolve_device(run, &found);
        if (keep(&problems, &found) && run->settings.computes_here) {
            tr__run_device_is_here(run, &found);
        }
        bool here = keep(&problems, &found), model = false, batch = false;
        if (here) { // else nothing is to be said before
            tr__run_resolve_model(run, &found);
            model = keep(&problems, &found);
        }
        if (model) {
            tr__run_resolve_data(run, &found);
            keep(&problems, &found);
            tr__run_resolve_batch(run, &found);
            batch = keep(&problems, &found);
            if (batch) {
                tr__run_resolve_groups(run, &found);
                batch = keep(&problems, &found);
            }
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
        if (run->given.parts.machine) {
            tr__run_resolve_target(run, run->given.parts.machine, &found);
            keep(&problems, &found);
        }
    }
    return tr__problems_end(&problems, err);
}

// A folder without a state.json: one that DeepSpeed saved, or an out folder with a
// checkpoint in it. folder: [PATH_MAX], what is resumed from.
static tr_status find_resumed(const char *asked, char *folder, bool *deepspeed,
                              tr_error *err) {
    tr_status status = tr__deepspeed_locate(asked, folder, err);
    *deepspeed = status == TR_OK && *folder;
    if (status == TR_OK && !*deepspeed) {
        status = tr_checkpoint_locate(asked, folder, PATH_MAX, err);
    }
    return status == TR_OK && !*deepspeed && strcmp(folder, asked) == 0
               ? tr_fail(err, TR_IO,
                         "%.300s: is no checkpoint, since it has no state.json: there "
                         "is nothing to resume. To start from its weights, give it as "
                         "the model (--model), without --resume",
                         asked)
               : status;
}

// A folder that --resume names is a checkpoint, or has one in it.
static tr_status resolve_resume(const char *asked, tr_settings *settings,
                                tr_error *err) {
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
        status = find_resumed(asked, folder, &settings->resume_deepspeed, err);
    }
    if (status != TR_OK) {
        return status;
    }
    settings->resume = tr__strdup(folder);
    return settings->resume ? TR_OK : tr_fail(err, TR_MEMORY, "no memory for a run");
}

static tr_status resolve_monitor(const tr_run *run, const char *group,
                                 tr_monitor_place *place, tr_error *err) {
    char path_key[64], job_key[64];
    if (!place->enabled) {
        return TR_OK;
    }
    snprintf(path_key, sizeof path_key, "%s.output_path", group);
    snprintf(job_key, sizeof job_key, "%s.job_name", group);
    const char *path = tr__config_text(run->config, path_key);
    const char *job = tr__config_text(run->config, job_key);
    if (strcmp(job, ".") == 0 || strcmp(job, "..") == 0 || strchr(job, '/')) {
        return tr_fail(err, TR_USAGE,
                       "%s is \"%.100s\"; it must be the name of a folder", job_key,
                       job);
    }
    place->path = tr__strdup(path && path[0] ? path : run->settings.out);
    place->job = tr__strdup(job);
    return place->path && place->job ? TR_OK
                                     : tr_fail(err, TR_MEMORY, "no memory for a run");
}

static tr_status resolve_monitors(tr_run *run, tr_error *err) {
    tr_settings *s = &run->settings;
    tr_status status = resolve_monitor(run, "csv_monitor", &s->csv_monitor, err);
    return status == TR_OK ? resolve_monitor(run, "tensorboard", &s->tensorboard, err)
                           : status;
}

static tr_status resolve_folders(tr_run *run, tr_error *err) {
    tr_settings *settings = &run->settings;
    settings->out = tr__strdup(tr__config_text(run->config, "out"));
    if (!settings->out) {
        return tr_fail(err, TR_MEMORY, "no memory for a run");
    }
    tr_status status =
        resolve_resume(tr__config_text(run->config, "resume"), settings, err);
    if (status != TR_OK) {
        return status;
    }
    const char *trace = tr__config_text(run->config, "trace");
    if (settings->trace_step > 0 && !trace) {
        return tr_fail(err, TR_USAGE,
                       "--trace-step has no effect without --trace: give both");
    }
    settings->trace = trace ? tr__strdup(trace) : NULL;
    if (trace && !settings->trace) {
        return tr_fail(err, TR_MEMORY, "no memory for a run");
    }
    bool bf16 = strcmp(tr__config_text(run->config, "checkpoint.dtype"), "bf16") == 0;
    settings->checkpoint_dtype = bf16 ? TR_BF16 : TR_F32;
    return resolve_monitors(run, err);
}

// Reads what was given anew.
static tr_status begin(tr_run *run, bool rules_out, tr_error *err) {
    tr__run_forget(run);
    run->opened = tr__seconds();
    run->comm = run->given.parts.comm;
    return tr__given_read(&run->given, rules_out, &run->config, err);
}

static tr_status resolve_alone(tr_run *run, tr_error *err) {
    tr_status status = begin(run, false, err);
    if (status == TR_OK) {
        status = tr__run_find_files(run, run->given.file, err);
    }
    if (status == TR_OK) {
        tr__config_read_fields(run->config, &run->settings);
        status = resolve_folders(run, err);
    }
    return status == TR_OK ? resolve_keys(run, err) : status;
}

static tr_status resolve(tr_run *run, tr_error *err) {
    tr_error mine = {0};
    tr_comm *comm = run->given.parts.comm;
    tr_status status = tr__agree(comm, resolve_alone(run, &mine), &mine, err);
    if (status == TR_OK) {
        status = tr__run_choose_device(run, err);
    }
    if (status == TR_OK) {
        status = tr__run_resolve_threads(run, err);
    }
    if (status == TR_OK) {
        status = tr__run_resolve_logits(run, err);
    }
    if (status == TR_OK) {
        status = tr__run_resolve_plan(run, err);
    }
    if (status == TR_OK) {
        tr__run_choose_exchange(run);
        status = tr__config_settle(run->config, &mine);
        status = tr__agree(comm, status, &mine, err);
    }
    return status;
}

static tr_status is_unresolved(const tr_run *run, const char *function, tr_error *err) {
    tr_status status = tr__need(run, function, "run", err);
    return status == TR_OK && run->resolved
               ? tr_fail(err, TR_USAGE, "%s: the run is resolved already", function)
               : status;
}

static tr_status end(tr_run *run, tr_status status) {
    run->resolved = status == TR_OK;
    if (status != TR_OK) {
        tr__run_forget(run);
    }
    return status;
}

static tr_status resolve_data_alone(tr_run *run, unsigned flags, tr_error *err) {
    tr_problems missing = {0};
    tr_status status = begin(run, flags & TR_OPEN_OTHER_DATA, err);
    run->labels_optional = flags & TR_OPEN_LABELS_OPTIONAL;
    run->vocabulary_fixed = flags & TR_OPEN_MODEL_AS_IT_IS;
    run->rows_alone = flags & TR_OPEN_NO_DATA;
    bool data = !(flags & TR_OPEN_NO_DATA);
    if (status == TR_OK && data) {
        tr__run_ask_data(run, &missing);
        status = tr__problems_end(&missing, err);
    }
    if (status == TR_OK) {
        tr__config_read_fields(run->config, &run->settings);
        status = tr__run_resolve_model(run, err);
    }
    if (status == TR_OK && data) {
        status = tr__run_resolve_data(run, err);
    }
    if (status == TR_OK) {
        status = tr__run_resolve_precision(run, err);
    }
    return status == TR_OK ? tr__run_resolve_device(run, err) : status;
}

tr_status tr__run_resolve_data_alone(tr_run *run, unsigned flags, tr_error *err) {
    return end(run, resolve_data_alone(run, flags, err));
}

// What cannot be read is an error of tr_run_resolve, on all ranks.
static bool asks_data_alone(tr_run *run) {
    const char *value = NULL;
    return tr_run_get(run, "data_only", &value, NULL, NULL) == TR_OK && value &&
           strcmp(value, "true") == 0;
}

tr_status tr_run_resolve(tr_run *run, tr_error *err) {
    tr_status status = is_unresolved(run, "tr_run_resolve", err);
    if (status != TR_OK) {
        return status;
    }
    if (asks_data_alone(run)) {
        return tr__run_resolve_data_alone(run, 0, err);
    }
    status = end(run, resolve(run, err));
    if (status == TR_OK) {
        tr__run_say_ignored(run);
        tr__run_say_idle(run);
    }
    return status;
}
