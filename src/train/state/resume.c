// Resuming a run.
#include "base/files.h"
#include "base/wait.h"
#include "comm/alone.h"
#include "ops/optimizers/optimizer_settings.h"
#include "train/engine.h"
#include "train/state/data_identity.h"
#include "train/state/model_identity.h"
#include "train/state/read_tensors.h"
#include "train/state/saved_tensors.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static void tell_reading(void *user, int64_t done, int64_t total) {
    tr__wait_part(user, (double)done, (double)total);
}

static tr_status check_state(tr_engine *engine, const tr_checkpoint *from,
                             tr_error *err) {
    const tr_state *state = &from->state;
    if (state->seed != engine->settings->seed) {
        return tr_fail(err, TR_IO,
                       "%s: was trained with seed %llu, and this run has seed %llu, "
                       "which would change the order of the data: set the seed back, "
                       "or begin a new run with another \"out\"",
                       from->folder, (unsigned long long)state->seed,
                       (unsigned long long)engine->settings->seed);
    }
    tr_status data =
        tr__data_identity_check(tr__run_train_data(engine->run), state, from->folder,
                                tr__run_log(engine->run), err);
    if (data != TR_OK) {
        return data;
    }
    if (state->group_count != (int64_t)engine->settings->group_count) {
        return tr_fail(
            err, TR_IO,
            "%s: was trained with %lld of optimizer.groups, and this run has "
            "%zu: give as many, or begin a new run from its weights, with "
            "\"model\": \"%s\" and another \"out\"",
            from->folder, (long long)state->group_count - 1,
            engine->settings->group_count - 1, from->folder);
    }
    return TR_OK;
}

static const char *optimizer_name(int number) {
    for (size_t i = 0; tr__optimizers[i]; i++) {
        if (tr__optimizers[i]->optimizer->number == number) {
            return tr__optimizers[i]->optimizer->name;
        }
    }
    return "one that this version does not know";
}

// States of one name may mean different things: a mean in Adam and in Lion.
static tr_status check_optimizer(const tr_engine *engine, const tr_checkpoint *from,
                                 tr_error *err) {
    const tr_optimizer *optimizer = engine->settings->optimizer;
    double number = optimizer->number; // where none was kept
    tr__state_numbers_get(&from->state.numbers, "optimizer", &number);
    return (int)number == optimizer->number
               ? TR_OK
               : tr_fail(
                     err, TR_IO,
                     "%s: was trained with another optimizer (%s) than this run's, "
                     "which is %s: set optimizer.type back, or begin a new run from "
                     "its weights, with \"model\": \"%s\" and another \"out\"",
                     from->folder, optimizer_name((int)number), optimizer->name,
                     from->folder);
}

static const char *type_name(tr_state_type type) {
    bool known = type >= 0 && type < TR_STATE_TYPES;
    return known ? tr__state_format(type)->name : "another type";
}

// States are saved as f32 values, or as bf16, which may go on in any type.
static void say_converted(const tr_engine *engine, const tr_checkpoint *from) {
    const tr_plan_request *r = &engine->plan->request;
    double was = TR_STATE_F32;
    tr__state_numbers_get(&from->state.numbers, TR_STATE_TYPE_NUMBER, &was);
    tr_state_type now = r->states[0].type;
    if (r->optimizer_states > 0 && (int)was != (int)now) {
        tr__note(tr__run_log(engine->run),
                 "%s: the optimizer's states were kept in %s, and go on in %s",
                 from->folder, type_name((tr_state_type)(int)was), type_name(now));
    }
}

// Of a checkpoint with an adapter: the base is read where the run has it.
static tr_status load_adapter(tr_engine *engine, const tr_checkpoint *from,
                              tr_error *err) {
    tr_status status = tr__engine_read_base(engine, err);
    const tr_weights_source source = {.set = from->model,
                                      .path = from->folder,
                                      .reads = TR_READS_TRAINED,
                                      .log = tr__run_log(engine->run)};
    return status == TR_OK ? tr__read_parameters(&source, engine->plan,
                                                 engine->executor, -1, NULL, err)
                           : status;
}

// Where the weights were written in fewer bits, those of f32 are beside the states.
static tr_status load_parameters(tr_engine *engine, const tr_checkpoint *from,
                                 tr_error *err) {
    if (engine->plan->request.model->adapter) {
        return load_adapter(engine, from, err);
    }
    char name[TR_TENSOR_NAME_MAX];
    tr__tensor_name(engine->plan, 0, NULL, name);
    const tr_stored_tensor *first = tr__tensor_set_find(from->model, name);
    bool rounded = first && first->dtype != TR_F32;
    tr_weights_source source = {.set = rounded ? from->optimizer : from->model,
                                .path = from->folder,
                                .log = tr__run_log(engine->run)};
    return tr__read_parameters(&source, engine->plan, engine->executor, -1,
                               rounded ? TR_SAVED_MASTER : NULL, err);
}

static tr_status load_tensors(tr_engine *engine, const tr_checkpoint *from,
                              tr_error *err) {
    int states = tr__plan_states(engine->plan);
    tr_status status = tr__engine_hash_base(engine, err);
    if (status == TR_OK) {
        status = tr__model_identity_check(engine, from, err);
    }
    if (status == TR_OK) {
        status = check_state(engine, from, err);
    }
    if (status == TR_OK) {
        status = check_optimizer(engine, from, err);
    }
    if (status == TR_OK) {
        status = load_parameters(engine, from, err);
    }
    if (status == TR_OK) {
        status = tr__read_states(from->model, from->folder, engine->plan,
                                 engine->executor, err);
    }
    if (status == TR_OK) {
        say_converted(engine, from);
    }
    for (int s = 0; s < states && status == TR_OK; s++) {
        status =
            tr__read_parameters(&(tr_weights_source){.set = from->optimizer,
                                                     .path = from->folder,
                                                     .log = tr__run_log(engine->run)},
                                engine->plan, engine->executor, s, NULL, err);
    }
    return status;
}

// What belongs to the weights: how many updates made them.
static void take_updates(tr_engine *engine, const tr_state *state) {
    engine->count.update = state->update;
    engine->count.learned = tr__engine_learned(state);
    memcpy(engine->power, state->beta_power,
           engine->settings->group_count * sizeof *engine->power);
}

// What is missing stays zero: the epoch's line is then about what is left of it.
static tr_epoch_sums get_epoch(const tr_state_numbers *numbers) {
    tr_epoch_sums sums = {.epoch = 0};
    double epoch = 0;
    tr__state_numbers_get(numbers, "epoch", &epoch);
    sums.epoch = (int64_t)epoch;
    tr__state_numbers_get(numbers, "epoch_loss", &sums.loss);
    tr__state_numbers_get(numbers, "epoch_correct", &sums.correct);
    tr__state_numbers_get(numbers, "epoch_targets", &sums.targets);
    return sums;
}

// It was that of the batch at work then, and the engine begins with the run's first;
// what was kept without its batch is taken for that one's. Stays, where none was kept.
static int get_exponent(const tr_engine *engine, const tr_state_numbers *numbers) {
    int64_t now = engine->batcher.batch;
    double exponent = engine->fixed_exponent, batch = (double)now;
    tr__state_numbers_get(numbers, "fixed_exponent", &exponent);
    tr__state_numbers_get(numbers, "fixed_batch", &batch);
    return (int)exponent + tr__engine_exponent_shift(engine, (int64_t)batch, now);
}

static tr_status load(tr_engine *engine, const tr_checkpoint *from, tr_error *err) {
    tr_status status = load_tensors(engine, from, err);
    if (status != TR_OK) {
        return status;
    }
    engine->count = (tr_counters){.step = from->state.step,
                                  .skipped = from->state.skipped,
                                  .cursor = from->state.cursor};
    take_updates(engine, &from->state);
    tr__engine_get_numbers(engine, &from->state.numbers);
    if (engine->settings->batches.adaptive) { // by limits that may be others now
        engine->wanted_batch =
            tr__batches_within(&engine->settings->batches, engine->wanted_batch);
    }
    engine->epoch = get_epoch(&from->state.numbers);
    engine->fixed_exponent = get_exponent(engine, &from->state.numbers);
    if (engine->settings->scale.dynamic && from->state.hysteresis > 0) {
        engine->scale = (tr_loss_scale){from->state.loss_scale, from->state.good_steps,
                                        from->state.hysteresis};
    }
    return TR_OK;
}

tr_status tr__engine_return(tr_engine *engine, const char *folder, tr_error *err) {
    tr_comm *comm = tr__run_comm(engine->run);
    tr_checkpoint *from = NULL;
    tr_status status =
        tr__checkpoint_open_all(comm, folder, TR_VERIFY_HASHES, NULL, &from, err);
    if (status == TR_OK) {
        tr_error mine = {0};
        status = load_tensors(engine, from, &mine);
        if (status == TR_OK) {
            status = tr__executor_round(engine->executor, &mine);
        }
        status = tr__agree(comm, status, &mine, err);
    }
    if (status == TR_OK) {
        take_updates(engine, &from->state);
        engine->stale_params = true;
    }
    tr__checkpoint_close(from);
    return status;
}

// Of which steps are the checkpoints in the out folder those that led to the one that
// is resumed from? Up to its own, where it is one of them; none, where it comes from
// elsewhere.
static int64_t own_steps(const tr_engine *engine, const char *folder) {
    char out[PATH_MAX], own[PATH_MAX], real[PATH_MAX], name[TR_STEP_NAME_MAX];
    if (tr__path_join(out, sizeof out, engine->settings->out, "checkpoints", NULL) !=
            TR_OK ||
        !realpath(out, own) || !realpath(folder, real)) {
        return -1;
    }
    char *slash = strrchr(real, '/');
    tr__step_name(engine->count.step, TR_STEP_PLAIN, name);
    bool same = strcmp(slash + 1, name) == 0;
    *slash = '\0';
    return same && strcmp(real, own) == 0 ? engine->count.step : -1;
}

// Those that this run leaves behind, before anything is done about them.
static void warn_branch(const tr_engine *engine) {
    const char *out = engine->settings->out;
    tr_checkpoint_entry *entries = NULL;
    size_t count = 0, others = 0;
    tr_checkpoint_list(out, &entries, &count, NULL);
    for (size_t i = 0; i < count; i++) {
        others += entries[i].step > engine->own_until;
    }
    if (others > 0) {
        tr__warn(tr__run_log(engine->run),
                 "%s/checkpoints has %zu that did not lead to this one: they are moved "
                 "aside (step-*.abandoned) when this run saves its first",
                 out, others);
    }
    tr_checkpoint_list_destroy(entries, count);
}

// Says what is resumed from, and what happens to the checkpoints in the out folder.
static void say_resumed(tr_engine *engine, const char *folder) {
    tr__note(tr__run_log(engine->run), "resumed from %s (step %lld)", folder,
             (long long)engine->count.step);
    engine->own_until = own_steps(engine, folder);
    if (tr__comm_leads(tr__run_comm(engine->run))) {
        warn_branch(engine);
    }
}

static tr_status say_changes(tr_engine *engine, const char *folder, tr_error *err) {
    tr_error mine = {0};
    tr_status status = tr__run_resolve_execution(engine->run, engine->plan, &mine);
    if (status == TR_OK && tr__comm_leads(tr__run_comm(engine->run))) {
        status = tr__run_say_changes(engine->run, folder, &mine);
    }
    return tr__agree(tr__run_comm(engine->run), status, &mine, err);
}

static tr_status load_folder(tr_engine *engine, const char *folder, tr_verify verify,
                             const tr_progress *progress, tr_error *err) {
    tr_comm *comm = tr__run_comm(engine->run);
    tr_checkpoint *from = NULL;
    tr_status status =
        tr__checkpoint_open_all(comm, folder, verify, progress, &from, err);
    if (status == TR_OK) {
        tr_error mine = {0};
        status = load(engine, from, &mine);
        status = tr__agree(comm, status, &mine, err);
    }
    if (status == TR_OK) {
        status = tr__engine_agree_weights(engine, folder, err);
    }
    if (status == TR_OK) {
        say_resumed(engine, folder);
        status = say_changes(engine, folder, err);
    }
    tr__checkpoint_close(from);
    return status;
}

static tr_status load_deepspeed(tr_engine *engine, const char *folder, tr_error *err) {
    tr_error mine = {0};
    tr_status status = tr__engine_load_deepspeed(engine, folder, err);
    if (status == TR_OK) {
        say_resumed(engine, folder);
        status = tr__run_resolve_execution(engine->run, engine->plan, &mine);
        status = tr__agree(tr__run_comm(engine->run), status, &mine, err);
    }
    return status;
}

static tr_status begin(tr_engine *engine, tr_error *err) {
    tr_error mine = {0};
    tr_status status = tr__engine_weights(engine, &mine);
    status = tr__agree(tr__run_comm(engine->run), status, &mine, err);
    if (!engine->settings->dry && !tr__run_weights(engine->run)) {
        tr__note(tr__run_log(engine->run), "new random weights (seed %llu)",
                 (unsigned long long)engine->settings->seed);
    }
    return status == TR_OK
               ? tr__engine_agree_weights(engine, tr__run_weights(engine->run), err)
               : status;
}

// Checkpoints of an earlier run that are in this one's folder: resumed from by mistake,
// they would be another run's. They go, but not before there is something in their
// place, and not unsaid.
static void warn_anew(const tr_engine *engine) {
    const char *out = engine->settings->out;
    tr_checkpoint_entry *entries = NULL;
    size_t count = 0, complete = 0;
    int64_t newest = 0;
    tr_checkpoint_list(out, &entries, &count, NULL);
    for (size_t i = 0; i < count; i++) {
        complete += entries[i].complete;
        newest = entries[i].complete ? entries[i].step : newest;
    }
    if (complete > 0) {
        tr__warn(tr__run_log(engine->run),
                 "%s/checkpoints has %zu of an earlier run, up to step %lld: they are "
                 "removed when this run saves its first",
                 out, complete, (long long)newest);
    }
    tr_checkpoint_list_destroy(entries, count);
}

tr_status tr__engine_resume(tr_engine *engine, tr_error *err) {
    const tr_settings *settings = engine->settings;
    char folder[PATH_MAX];
    tr_wait wait = tr__wait_begin(tr__run_log(engine->run), "reading the checkpoint");
    tr_progress progress = {tell_reading, &wait};
    engine->own_until = INT64_MAX;
    if (strcmp(settings->resume, "never") == 0) {
        engine->anew = true;
        if (!settings->dry && tr__comm_leads(tr__run_comm(engine->run))) {
            warn_anew(engine);
        }
        return begin(engine, err);
    }
    if (settings->resume_deepspeed) {
        return load_deepspeed(engine, settings->resume, err);
    }
    if (strcmp(settings->resume, "auto") != 0) {
        return load_folder(engine, settings->resume, TR_VERIFY_HASHES, &progress, err);
    }
    tr_status status = tr__checkpoint_find(tr__run_comm(engine->run), settings->out,
                                           &progress, folder, err);
    if (status != TR_OK) {
        return status;
    }
    // Hashes have been verified on the way to the folder.
    return folder[0] ? load_folder(engine, folder, TR_VERIFY_SIZES, NULL, err)
                     : begin(engine, err);
}
