// Saving and resuming a run.
#include "base/clock.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/memory.h"
#include "comm/alone.h"
#include "models/models.h"
#include "train/data_identity.h"
#include "train/engine.h"
#include "train/folder.h"
#include "train/saved_tensors.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Without what lies between and behind a shape's numbers in memory.
static uint64_t hash_shape(uint64_t hash, const tr_shape *shape) {
    return tr__hash_more(hash, shape->dim, (size_t)shape->rank * sizeof *shape->dim);
}

// Of names and shapes, as files have them: tells whether a checkpoint is of this model.
static uint64_t model_hash(const tr_engine *engine) {
    uint64_t hash = 0;
    for (size_t i = 0; i < engine->plan->param_count; i++) {
        const tr_plan_param *param = &engine->plan->params[i];
        if (param->first == 0) { // a slice stands for the whole
            hash = tr__hash_more(hash, param->stored, strlen(param->stored));
            hash = hash_shape(hash, &param->stored_shape);
        }
    }
    for (size_t i = 0; i < engine->plan->state_count; i++) {
        const tr_plan_state *state = &engine->plan->states[i];
        hash = tr__hash_more(hash, state->name, strlen(state->name));
        hash = hash_shape(hash, &state->desc.shape);
    }
    return hash;
}

// Of the names of what is frozen; 0: nothing is. A double holds it exactly.
static double frozen_hash(const tr_engine *engine) {
    const tr_plan *plan = engine->plan;
    uint64_t hash = 0;
    for (size_t i = 0; i < plan->param_count; i++) {
        const tr_plan_param *param = &plan->params[i];
        if (plan->flats[param->flat].frozen && param->first == 0) {
            hash = tr__hash_more(hash, param->stored, strlen(param->stored) + 1);
        }
    }
    return (double)(hash >> 11);
}

// ---- saving
// --------------------------------------------------------------------------

// The sums of an epoch that a checkpoint cuts in two.
static void put_epoch(const tr_epoch_sums *sums, tr_state_numbers *numbers) {
    tr__state_numbers_set(numbers, "epoch", (double)sums->epoch);
    tr__state_numbers_set(numbers, "epoch_loss", sums->loss);
    tr__state_numbers_set(numbers, "epoch_correct", sums->correct);
    tr__state_numbers_set(numbers, "epoch_targets", sums->targets);
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

static tr_state state_of(const tr_engine *engine) {
    tr_batcher batcher = tr__engine_next_batcher(engine);
    tr_state state = {
        .step = engine->count.step,
        .update = engine->count.update,
        .skipped = engine->count.skipped,
        .cursor = engine->count.cursor,
        .epoch = tr__batcher_next(&batcher, engine->count.cursor).epoch,
        .seed = engine->settings->seed,
        .model_hash = model_hash(engine),
        .loss_scale = engine->scale.scale,
        .good_steps = engine->scale.good,
        .hysteresis = engine->scale.hysteresis,
        .group_count = (int64_t)engine->settings->group_count,
    };
    memcpy(state.beta_power, engine->power,
           engine->settings->group_count * sizeof *engine->power);
    tr__data_identity_put(tr__run_train_data(engine->run), &state);
    put_epoch(&engine->epoch, &state.numbers);
    tr__state_numbers_set(&state.numbers, "optimizer",
                          engine->settings->optimizer->number);
    tr__engine_put_numbers(engine, &state.numbers);
    if (frozen_hash(engine) != 0) {
        tr__state_numbers_set(&state.numbers, "frozen", frozen_hash(engine));
    }
    if (engine->plan->request.reproducible) {
        tr__state_numbers_set(&state.numbers, "fixed_exponent", engine->fixed_exponent);
        tr__state_numbers_set(&state.numbers, "fixed_batch",
                              (double)engine->batcher.batch);
    }
    tr__run_keep_choice(engine->run, &state.numbers);
    tr__run_keep_threads(engine->run, engine->plan->request.threads, &state.numbers);
    return state;
}

static tr_status list_all(tr_engine *engine, tr_saved_tensors *model,
                          tr_saved_tensors *optimizer, char **config, tr_error *err) {
    tr_comm *comm = tr__run_comm(engine->run);
    tr_error mine = {0};
    tr_status status = TR_OK;
    bool good = tr__saved_model(engine, model);
    good = tr__saved_optimizer(engine, optimizer) && good;
    *config =
        tr__model_config(tr_run_model(engine->run), engine->settings->checkpoint_dtype);
    if (!good || !*config) {
        status = tr_fail(&mine, TR_MEMORY, "no memory to list a checkpoint's tensors");
    }
    return tr__agree(comm, status, &mine, err);
}

tr_status tr__engine_save(tr_engine *engine, const tr_progress *progress,
                          tr_error *err) {
    tr_saved_tensors model, optimizer;
    tr_state state = state_of(engine);
    char *config = NULL;
    tr_status status = tr__engine_settle(engine, err);
    if (status != TR_OK) {
        return status;
    }
    status = list_all(engine, &model, &optimizer, &config, err);
    if (status == TR_OK) {
        tr_checkpoint_input input = {
            .comm = tr__run_comm(engine->run),
            .out_folder = engine->settings->out,
            .keep = engine->settings->keep,
            .anew = engine->anew,
            .branches = engine->own_until < INT64_MAX,
            .own_until = engine->own_until,
            .state = &state,
            .config = config,
            .companions = &engine->companions,
            .model = model.tensors,
            .model_count = model.count,
            .shard_bytes = engine->settings->shard_bytes,
            .optimizer = optimizer.tensors,
            .optimizer_count = optimizer.count,
            .source = {tr__saved_read, engine},
            .log = tr__run_log(engine->run),
            .progress = *progress,
        };
        status = tr__checkpoint_save(&input, err);
    }
    if (status == TR_OK) {
        engine->anew = false;
        engine->own_until = INT64_MAX;
    }
    tr__saved_free(&model);
    tr__saved_free(&optimizer);
    tr__free(config);
    return status;
}

tr_status tr_engine_save(tr_engine *engine, tr_error *err) {
    return tr__engine_save(engine, &(tr_progress){0}, err);
}

// ---- resuming
// ------------------------------------------------------------------------

// Reading a checkpoint: told as notes once it takes longer than people like to wait
// without a word.
typedef struct reading {
    const tr_log *log;
    double next; // tr__seconds() of the next note
} reading;

static const double reading_every = 2; // seconds

static void tell_reading(void *user, int64_t done, int64_t total) {
    reading *r = user;
    double now = tr__seconds();
    if (now >= r->next && total > 0) {
        r->next = now + reading_every;
        tr__note(r->log, "reading the checkpoint: %.0f%%",
                 100 * (double)done / (double)total);
    }
}

static tr_status check_state(tr_engine *engine, const tr_checkpoint *from,
                             tr_error *err) {
    const tr_state *state = &from->state;
    if (state->model_hash != model_hash(engine)) {
        return tr_fail(err, TR_IO,
                       "%s: is a checkpoint of another model (names or shapes differ); "
                       "choose another \"out\" folder, or --resume never",
                       from->folder);
    }
    if (state->seed != engine->settings->seed) {
        return tr_fail(err, TR_IO,
                       "%s: was trained with seed %llu, this run has seed %llu: the "
                       "order of the data would change in the middle",
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
        return tr_fail(err, TR_IO, "%s: has %lld parameter groups, this run has %zu",
                       from->folder, (long long)state->group_count,
                       engine->settings->group_count);
    }
    return TR_OK;
}

// What is trained here and was frozen there has no states; the other way round they
// would be lost.
static tr_status check_frozen(const tr_engine *engine, const tr_checkpoint *from,
                              tr_error *err) {
    double was = 0;
    tr__state_numbers_get(&from->state.numbers, "frozen", &was);
    return was == frozen_hash(engine)
               ? TR_OK
               : tr_fail(err, TR_IO,
                         "%s: was trained with another \"freeze\" than this run's, so "
                         "it has the optimizer's states of other parameters: give the "
                         "same \"freeze\", or begin a new run from its weights, with "
                         "\"model\": \"%s\" and another \"out\"",
                         from->folder, from->folder);
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
                     "%s: was trained with another optimizer than this run's, which "
                     "is %s",
                     from->folder, optimizer->name);
}

// Where the weights were written in fewer bits, those of f32 are beside the states.
static tr_status load_parameters(tr_engine *engine, const tr_checkpoint *from,
                                 tr_error *err) {
    char name[TR_TENSOR_NAME_MAX];
    tr__tensor_name(engine->plan, 0, NULL, name);
    const tr_stored_tensor *first = tr__tensor_set_find(from->model, name);
    bool rounded = first && first->dtype != TR_F32;
    tr_weights_source source = {rounded ? from->optimizer : from->model, from->folder,
                                0, 0};
    return tr__read_parameters(&source, engine->plan, engine->executor, -1,
                               rounded ? TR_SAVED_MASTER : NULL, err);
}

static tr_status load_tensors(tr_engine *engine, const tr_checkpoint *from,
                              tr_error *err) {
    const tr_optimizer *optimizer = engine->settings->optimizer;
    int states = engine->plan->request.optimizer_states;
    tr_status status = check_state(engine, from, err);
    if (status == TR_OK) {
        status = check_optimizer(engine, from, err);
    }
    if (status == TR_OK) {
        status = check_frozen(engine, from, err);
    }
    if (status == TR_OK) {
        status = load_parameters(engine, from, err);
    }
    if (status == TR_OK) {
        status = tr__read_states(from->model, from->folder, engine->plan,
                                 engine->executor, err);
    }
    for (int s = 0; s < states && status == TR_OK; s++) {
        status = tr__read_parameters(
            &(tr_weights_source){from->optimizer, from->folder, 0, 0}, engine->plan,
            engine->executor, s, optimizer->state_names[s], err);
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
                 "%s/checkpoints has %zu that did not lead to this one: once this run "
                 "has saved its first, they are moved aside (step-*.abandoned)",
                 out, others);
    }
    tr_checkpoint_list_destroy(entries, count);
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
        tr__note(tr__run_log(engine->run), "resumed from %s (step %lld)", folder,
                 (long long)engine->count.step);
        engine->own_until = own_steps(engine, folder);
        if (tr__comm_leads(comm)) {
            warn_branch(engine);
        }
        status = say_changes(engine, folder, err);
    }
    tr__checkpoint_close(from);
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
                 "%s/checkpoints has %zu of an earlier run, up to step %lld: once this "
                 "run has saved its first, they are removed",
                 out, complete, (long long)newest);
    }
    tr_checkpoint_list_destroy(entries, count);
}

tr_status tr__engine_resume(tr_engine *engine, tr_error *err) {
    const tr_settings *settings = engine->settings;
    char folder[PATH_MAX];
    reading read = {tr__run_log(engine->run), tr__seconds() + reading_every};
    tr_progress progress = {tell_reading, &read};
    engine->own_until = INT64_MAX;
    if (strcmp(settings->resume, "never") == 0) {
        engine->anew = true;
        if (!settings->dry && tr__comm_leads(tr__run_comm(engine->run))) {
            warn_anew(engine);
        }
        return begin(engine, err);
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
