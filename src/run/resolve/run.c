#include "run/run.h"

#include "base/arguments.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "comm/alone.h"
#include "plan/flow/plan.h"

#include <stdio.h>
#include <unistd.h>

// One rank speaks.
static void pass_on(void *user, tr_log_level level, const char *line) {
    const tr_run *run = user;
    const tr_messages *messages = &run->given.parts.messages;
    if (messages->write && tr__comm_leads(run->comm)) {
        messages->write(messages->user,
                        level == TR_LOG_WARNING ? TR_MESSAGE_WARNING : TR_MESSAGE_NOTE,
                        line);
    }
}

void tr__settings_clear(tr_settings *settings) {
    for (size_t g = 0; g < settings->group_count; g++) {
        tr__patterns_clear(&settings->groups[g].match);
    }
    tr__free(settings->groups);
    tr__free(settings->apart_rules);
    tr__patterns_clear(&settings->freeze);
    tr__free(settings->batches.changes);
    tr__free(settings->out);
    tr__free(settings->nvme_path);
    tr__free(settings->csv_monitor.path);
    tr__free(settings->csv_monitor.job);
    tr__free(settings->tensorboard.path);
    tr__free(settings->tensorboard.job);
    tr__free(settings->resume);
    tr__free(settings->trace);
    *settings = (tr_settings){0};
}

void tr__run_forget(tr_run *run) {
    if (run->own_data) {
        tr_dataset_destroy(run->validation);
        tr_dataset_destroy(run->train);
    }
    tr_model_destroy(run->own_model);
    tr_planned_destroy(run->planned);
    tr__settings_clear(&run->settings);
    tr__config_destroy(run->config);
    tr__free(run->weights);
    tr__free(run->adapter);
    tr__free(run->model_folder);
    tr__free(run->tokenizer);
    tr__free(run->told_value);
    tr__free(run->told_origin);
    if (run->lock >= 0) {
        close(run->lock);
    }
    *run =
        (tr_run){.given = run->given, .sharers = 1, .lock = -1, .log = {pass_on, run}};
}

void tr_run_destroy(tr_run *run) {
    if (!run) {
        return;
    }
    tr__run_forget(run);
    tr__given_clear(&run->given);
    tr__free(run);
}

tr_status tr__run_need_resolved(const tr_run *run, const char *function,
                                tr_error *err) {
    tr_status status = tr__need(run, function, "run", err);
    return status == TR_OK && !run->resolved
               ? tr_fail(err, TR_USAGE,
                         "%s: the run is not resolved; call tr_run_resolve", function)
               : status;
}

// ---- asking

tr_status tr_run_make_plan(const tr_run *run, tr_plan **out, tr_error *err) {
    tr_status status = tr__run_need_resolved(run, "tr_run_make_plan", err);
    if (status == TR_OK) {
        status = tr__need(out, "tr_run_make_plan", "out", err);
    }
    return status == TR_OK ? tr_plan_make(&run->request, out, err) : status;
}

const tr_plan_request *tr_run_plan_request(const tr_run *run) {
    return run && run->resolved ? &run->request : NULL;
}

const tr_planned *tr_run_planned(const tr_run *run) {
    return run ? run->planned : NULL;
}

tr_status tr_run_check_memory(const tr_run *run, const tr_plan *plan, tr_error *err) {
    static const char name[] = "tr_run_check_memory";
    tr_status status = tr__run_need_resolved(run, name, err);
    status = status == TR_OK ? tr__need(plan, name, "plan", err) : status;
    return status == TR_OK ? tr__run_fits(run, plan, err) : status;
}

int64_t tr_run_ranks(const tr_run *run) {
    return run && run->resolved ? tr_mesh_ranks(&run->request.mesh) : 0;
}

tr_dataset *tr_run_data(const tr_run *run) {
    return run && run->resolved && run->has_data ? run->train : NULL;
}

int64_t tr_run_sample(const tr_run *run, int64_t epoch, int64_t position) {
    const tr_dataset *data = tr_run_data(run);
    bool there =
        data && epoch >= 0 && position >= 0 && position < tr_dataset_samples(data);
    return there ? tr__order_sample(&run->order, epoch, position) : -1;
}

const char *tr_run_tokenizer(const tr_run *run) {
    return run && run->resolved ? run->tokenizer : NULL;
}

const tr_model *tr_run_model(const tr_run *run) {
    return run ? run->model : NULL;
}

int64_t tr_run_steps(const tr_run *run) {
    return run ? run->settings.steps : 0;
}

int64_t tr_run_evaluated(const tr_run *run) {
    static const char key[] = "data.validation";
    if (!run || !run->resolved) {
        return 0;
    }
    int64_t asked = run->settings.evaluate_samples;
    if (run->validation) {
        int64_t all = tr_dataset_samples(run->validation);
        return asked > 0 ? tr__min_i64(asked, all) : all;
    }
    bool named = tr__config_type(run->config, key) == TR_KEY_NUMBER ||
                 tr__config_count(run->config, key) > 0;
    return run->has_data || !named ? 0 : asked;
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
