// A run in one call, for tests: what a test says of it, as one value.
#ifndef TESTS_TRAIN_OPENING_H
#define TESTS_TRAIN_OPENING_H

#include <tranche/comm.h>
#include <tranche/run.h>

#include <stdint.h>
#include <stdio.h>

// Zero or NULL: not given.
typedef struct run_options {
    const char *file, *text;
    const char *const *set; // "KEY.PATH=VALUE"
    size_t set_count;
    const char *const *data;
    size_t data_count;
    const char *model, *out, *resume, *trace;
    int64_t steps, ranks;
    struct tr_comm *comm;
    const tr_machine *machine;
    bool choose_device, computes_here, plan_only;
    const tr_model *own_model;
    tr_dataset *own_train, *own_validation;
    tr_messages messages;
    bool (*stop)(void *user);
    void *stop_user;
} run_options;

static inline tr_status run_set_options(tr_run *run, const run_options *o,
                                        tr_error *err) {
    const char *const texts[][2] = {{"model", o->model},
                                    {"out", o->out},
                                    {"resume", o->resume},
                                    {"trace", o->trace}};
    const char *const switches[][2] = {
        {"choose_device", o->choose_device ? "true" : NULL},
        {"computes_here", o->computes_here ? "true" : NULL},
        {"plan_only", o->plan_only ? "true" : NULL}};
    tr_status status = tr_run_name_source(run, "--set", err);
    for (size_t i = 0; i < o->set_count && status == TR_OK; i++) {
        status = tr_run_assign(run, o->set[i], err);
    }
    for (size_t i = 0; i < o->data_count && status == TR_OK; i++) {
        status = tr_run_add_text(run, "data.train", o->data[i], err);
    }
    for (size_t i = 0; i < sizeof texts / sizeof *texts && status == TR_OK; i++) {
        status =
            texts[i][1] ? tr_run_set_text(run, texts[i][0], texts[i][1], err) : TR_OK;
    }
    for (size_t i = 0; i < sizeof switches / sizeof *switches && status == TR_OK; i++) {
        status = switches[i][1] ? tr_run_set(run, switches[i][0], switches[i][1], err)
                                : TR_OK;
    }
    return status;
}

static inline tr_status run_set_number(tr_run *run, const char *key, int64_t value,
                                       tr_error *err) {
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)value);
    return value > 0 ? tr_run_set(run, key, text, err) : TR_OK;
}

static inline tr_status run_set_numbers(tr_run *run, const run_options *o,
                                        tr_error *err) {
    tr_status status = run_set_number(run, "steps", o->steps, err);
    if (status == TR_OK && o->steps > 0) {
        status = tr_run_set(run, "epochs", "null", err);
    }
    return status == TR_OK ? run_set_number(run, "ranks", o->ranks, err) : status;
}

// A run that is not resolved; the test destroys *out, also after an error.
static inline tr_status run_make(const run_options *o, tr_run **out, tr_error *err) {
    tr_run_parts parts = TR_RUN_PARTS_INIT;
    parts.comm = o->comm;
    parts.machine = o->machine;
    parts.model = o->own_model;
    parts.train = o->own_train;
    parts.validation = o->own_validation;
    parts.messages = o->messages;
    parts.stop = o->stop;
    parts.stop_user = o->stop_user;
    tr_status status = tr_run_create(out, err);
    if (status == TR_OK) {
        status = tr_run_give(*out, &parts, err);
    }
    if (status == TR_OK && o->file) {
        status = tr_run_load_file(*out, o->file, err);
    }
    if (status == TR_OK && o->text) {
        status = tr_run_load_text(*out, o->text, err);
    }
    if (status == TR_OK) {
        status = run_set_options(*out, o, err);
    }
    return status == TR_OK ? run_set_numbers(*out, o, err) : status;
}

// Resolved; *out stays NULL after an error. Collective where there are ranks.
static inline tr_status run_open(const run_options *o, tr_run **out, tr_error *err) {
    tr_run *run = NULL;
    tr_error mine = {0};
    tr_status status = run_make(o, &run, &mine);
    if (o->comm) {
        status = tr_comm_agree(o->comm, &mine, err);
    } else if (status != TR_OK && err) {
        *err = mine;
    }
    if (status == TR_OK) {
        status = tr_run_resolve(run, err);
    }
    if (status != TR_OK) {
        tr_run_destroy(run);
        return status;
    }
    *out = run;
    return TR_OK;
}

#endif
