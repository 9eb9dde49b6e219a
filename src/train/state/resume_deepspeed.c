// Going on from a folder that DeepSpeed saved.
#include "comm/alone.h"
#include "files/deepspeed/deepspeed.h"
#include "models/folder.h"
#include "train/engine.h"
#include "train/state/read_tensors.h"

#include <string.h>

// Is it the first slice of its tensor, which stands for the whole, or a part of it?
static bool stands(const tr_plan *plan, size_t param) {
    return plan->params[param].tensor == (int)param;
}

static bool is_frozen(const tr_plan *plan, size_t param) {
    return plan->flats[plan->params[param].flat].frozen;
}

static bool is_trained(const void *user, const char *name) {
    const tr_plan *plan = user;
    bool found = false;
    for (size_t i = 0; i < plan->param_count && !found; i++) {
        found = !is_frozen(plan, i) && strcmp(plan->params[i].stored, name) == 0;
    }
    return found;
}

// ---- is it this run's model?

static tr_status check_param(const tr_deepspeed *saved, const tr_plan *plan,
                             size_t param, const char *folder, json_t *used,
                             tr_error *err) {
    const char *name = plan->params[param].stored;
    const tr_stored_tensor *found = tr__tensor_set_find_prefixed(saved->tensors, name);
    const char *trained =
        found ? json_string_value(json_object_get(saved->trained, found->name)) : NULL;
    if (!found) {
        return tr_fail(err, TR_IO, "%.600s is of another model: %.200s is missing",
                       folder, name);
    }
    if (is_frozen(plan, param) == (trained != NULL)) {
        return tr_fail(
            err, TR_IO,
            "%.600s is of another model: it has %.200s %strained, and this run "
            "otherwise (key \"freeze\")",
            folder, name, trained ? "" : "not ");
    }
    return trained && json_object_set_new(used, trained, json_true()) != 0
               ? tr_fail(err, TR_MEMORY, "no memory to read %s", folder)
               : TR_OK;
}

static tr_status check_params(const tr_deepspeed *saved, const tr_plan *plan,
                              const char *folder, tr_error *err) {
    const char *name;
    json_t *first, *used = json_object();
    tr_status status =
        used ? TR_OK : tr_fail(err, TR_MEMORY, "no memory to read %s", folder);
    for (size_t i = 0; i < plan->param_count && status == TR_OK; i++) {
        status =
            stands(plan, i) ? check_param(saved, plan, i, folder, used, err) : TR_OK;
    }
    json_object_foreach(saved->trained, name, first) {
        if (status == TR_OK && !json_object_get(used, json_string_value(first))) {
            status = tr_fail(err, TR_IO,
                             "%.600s is of another model: it trains %.200s, which this "
                             "run's model has not",
                             folder, name);
        }
    }
    json_decref(used);
    return status;
}

// Does the run's optimizer keep the state?
static bool keeps(const tr_plan *plan, const char *name) {
    bool found = false;
    for (size_t i = 0; i < plan->flat_count; i++) {
        const tr_flat *flat = &plan->flats[i];
        for (int s = 0; s < tr__flat_states(plan, flat); s++) {
            found = found || strcmp(tr__state_name(plan, flat, s), name) == 0;
        }
    }
    return found;
}

// What of the states is missing here, reading says.
static tr_status check_states(const tr_engine *engine, const tr_deepspeed *saved,
                              const char *folder, tr_error *err) {
    for (int s = 0; s < saved->states; s++) {
        if (!keeps(engine->plan, saved->state[s])) {
            return tr_fail(err, TR_IO,
                           "%.600s: its optimizer keeps %s, which this run's (%s) does "
                           "not: set optimizer.type to DeepSpeed's",
                           folder, saved->state[s], engine->settings->optimizer->name);
        }
    }
    return TR_OK;
}

static tr_status check(const tr_engine *engine, const tr_deepspeed *saved,
                       const char *folder, tr_error *err) {
    tr_status status = check_params(saved, engine->plan, folder, err);
    return status == TR_OK ? check_states(engine, saved, folder, err) : status;
}

// ---- reading

// Rows of tokens, where they are padded there.
static int64_t rows_of(const tr_engine *engine, const tr_tensor_set *set) {
    const tr_plan *plan = engine->plan;
    for (size_t i = 0; i < plan->param_count; i++) {
        const tr_plan_param *param = &plan->params[i];
        const tr_stored_tensor *stored =
            tr__is_token_tensor(plan->request.model, param->stored)
                ? tr__tensor_set_find_prefixed(set, param->stored)
                : NULL;
        if (stored && stored->rank > 0 &&
            stored->dim[0] >= param->stored_shape.dim[0]) {
            return stored->dim[0];
        }
    }
    return 0;
}

static tr_status read_tensors(tr_engine *engine, const tr_deepspeed *saved,
                              const char *folder, tr_error *err) {
    const tr_weights_source from = {.set = saved->tensors,
                                    .path = folder,
                                    .rows = rows_of(engine, saved->tensors),
                                    .log = tr__run_log(engine->run)};
    int states = tr__plan_states(engine->plan);
    tr_status status =
        tr__read_parameters(&from, engine->plan, engine->executor, -1, NULL, err);
    if (status == TR_OK) {
        status = tr__read_states(saved->tensors, folder, engine->plan, engine->executor,
                                 err);
    }
    for (int s = 0; s < states && status == TR_OK; s++) {
        status =
            tr__read_parameters(&from, engine->plan, engine->executor, s, NULL, err);
    }
    return status;
}

static tr_status load(tr_engine *engine, const char *folder, tr_deepspeed *saved,
                      tr_error *err) {
    bool verify = tr__comm_leads(tr__run_comm(engine->run));
    if (engine->plan->request.model->adapter) {
        return tr_fail(
            err, TR_IO,
            "%.600s: DeepSpeed saved this folder, and an adapter does not go "
            "on from it: take \"adapter\" out of the run file, or resume from "
            "a checkpoint of Tranche's",
            folder);
    }
    tr_status status =
        tr__deepspeed_open(folder, verify, is_trained, engine->plan, saved, err);
    status = status == TR_OK ? check(engine, saved, folder, err) : status;
    return status == TR_OK ? read_tensors(engine, saved, folder, err) : status;
}

tr_status tr__engine_load_deepspeed(tr_engine *engine, const char *folder,
                                    tr_error *err) {
    tr_error mine = {0};
    tr_deepspeed saved = {0};
    tr_status status = load(engine, folder, &saved, &mine);
    status = tr__agree(tr__run_comm(engine->run), status, &mine, err);
    if (status == TR_OK) {
        status = tr__engine_agree_set(engine, saved.tensors, folder, err);
    }
    if (status == TR_OK) {
        engine->count =
            (tr_counters){.skipped = saved.skipped, .learned = saved.samples};
        tr__engine_count_updates(engine, saved.updates);
        tr__note(
            tr__run_log(engine->run),
            "%s: DeepSpeed saved it (ZeRO %d, %lld updates); the order of the data "
            "begins anew",
            folder, saved.stage, (long long)saved.updates);
    }
    tr__deepspeed_close(&saved);
    return status;
}
