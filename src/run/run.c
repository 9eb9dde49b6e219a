#include "run/run.h"

#include "base/arguments.h"
#include "base/clock.h"
#include "base/memory.h"
#include "comm/alone.h"
#include "plan/plan.h"
#include "plan/print.h"

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
    tr__patterns_clear(&settings->freeze);
    tr__free(settings->batches.changes);
    tr__free(settings->out);
    tr__free(settings->nvme_path);
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

static tr_status can_print(const tr_run *run, const tr_plan *plan, const void *to,
                           const char *function, tr_error *err) {
    tr_status status = tr__run_need_resolved(run, function, err);
    status = status == TR_OK ? tr__need(plan, function, "plan", err) : status;
    status = status == TR_OK ? tr__need(to, function, "to", err) : status;
    return status == TR_OK ? tr__run_check_patterns(run, plan, err) : status;
}

tr_status tr_run_print_plan(const tr_run *run, const tr_plan *plan, FILE *to,
                            tr_error *err) {
    tr_status status = can_print(run, plan, to, "tr_run_print_plan", err);
    if (status == TR_OK) {
        status = tr_plan_print(plan, to, err);
    }
    return status == TR_OK && run->planned ? tr_planned_print(run->planned, to, err)
                                           : status;
}

tr_status tr_run_print_plan_json(const tr_run *run, const tr_plan *plan, FILE *to,
                                 tr_error *err) {
    tr_status status = can_print(run, plan, to, "tr_run_print_plan_json", err);
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
    return run ? run->model : NULL;
}

int64_t tr_run_steps(const tr_run *run) {
    return run ? run->settings.steps : 0;
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
