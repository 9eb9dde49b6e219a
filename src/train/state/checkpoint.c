// Saving a run.
#include "base/arguments.h"
#include "base/memory.h"
#include "comm/alone.h"
#include "models/adapter.h"
#include "models/models.h"
#include "models/sentence.h"
#include "run/run.h"
#include "train/engine.h"
#include "train/state/data_identity.h"
#include "train/state/model_identity.h"
#include "train/state/saved_tensors.h"

#include <string.h>

// The sums of an epoch that a checkpoint cuts in two.
static void put_epoch(const tr_epoch_sums *sums, tr_state_numbers *numbers) {
    tr__state_numbers_set(numbers, "epoch", (double)sums->epoch);
    tr__state_numbers_set(numbers, "epoch_loss", sums->loss);
    tr__state_numbers_set(numbers, "epoch_correct", sums->correct);
    tr__state_numbers_set(numbers, "epoch_targets", sums->targets);
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
    if (engine->plan->request.states[0].type != TR_STATE_F32) {
        tr__state_numbers_set(&state.numbers, TR_STATE_TYPE_NUMBER,
                              engine->plan->request.states[0].type);
    }
    tr__engine_put_numbers(engine, &state.numbers);
    tr__model_identity_put(engine, &state);
    if (engine->plan->request.reproducible) {
        tr__state_numbers_set(&state.numbers, "fixed_exponent", engine->fixed_exponent);
        tr__state_numbers_set(&state.numbers, "fixed_batch",
                              (double)engine->batcher.batch);
    }
    tr__run_keep_choice(engine->run, &state.numbers);
    tr__run_keep_logits(engine->run, &state.numbers);
    tr__run_keep_threads(engine->run, engine->plan->request.threads, &state.numbers);
    return state;
}

// Of config.json; NULL: no memory. A model of the caller's own has what it says itself.
static char *config_of(const tr_engine *engine) {
    const tr_run *run = engine->run;
    const char *own = run->model->config_json;
    return run->own_model
               ? tr__model_config(run->own_model, engine->settings->checkpoint_dtype)
               : tr__strdup(own ? own : "{}\n");
}

// Of adapter_config.json, on the base that the run has read; NULL: no memory, or no
// adapter.
static char *adapter_of(const tr_engine *engine) {
    const tr_run *run = engine->run;
    const tr_model *model = run->model;
    const tr_adapter_config *adapter = tr__model_adapter(model);
    return adapter
               ? tr__adapter_text(adapter, model->type, model->labels > 0, run->weights)
               : NULL;
}

// The files that are text.
typedef struct written {
    char *config, *adapter;
    tr_sentence_file sentence[TR_SENTENCE_FILES];
    tr_checkpoint_text more[TR_SENTENCE_FILES];
    int more_count;
} written;

static void release(written *w) {
    tr__free(w->config);
    tr__free(w->adapter);
    tr__sentence_release(w->sentence);
}

// What sentence-transformers reads, of a whole model that makes embeddings.
static tr_status write_sentence(const tr_engine *engine, written *w, tr_error *err) {
    const tr_run *run = engine->run;
    const tr_embedding_way *way =
        run->own_model && tr__model_type_reads_tokens(run->own_model->type)
            ? tr__model_embedding(run->own_model)
            : NULL;
    if (!way || run->model->adapter) {
        return TR_OK;
    }
    int64_t group = tr__model_group(run->own_model);
    int64_t tokens = tr_shape_count(tr_batch_input(&run->model->batch)->desc.shape);
    tr_status status =
        tr__sentence_write(way, tokens / (group > 0 ? group : 1),
                           run->model->embedding_width, w->sentence, err);
    for (int i = 0; i < TR_SENTENCE_FILES && status == TR_OK; i++) {
        const tr_sentence_file *file = &w->sentence[i];
        w->more[w->more_count++] = (tr_checkpoint_text){file->name, file->text};
    }
    return status;
}

static tr_status list_all(tr_engine *engine, tr_saved_tensors *model,
                          tr_saved_tensors *optimizer, written *w, tr_error *err) {
    tr_comm *comm = tr__run_comm(engine->run);
    tr_error mine = {0};
    tr_status status = TR_OK;
    bool good = tr__saved_model(engine, model);
    good = tr__saved_optimizer(engine, optimizer) && good;
    w->config = config_of(engine);
    w->adapter = adapter_of(engine);
    if (!good || !w->config || (engine->run->model->adapter && !w->adapter)) {
        status = tr_fail(&mine, TR_MEMORY, "no memory to list a checkpoint's tensors");
    }
    status = status == TR_OK ? write_sentence(engine, w, &mine) : status;
    return tr__agree(comm, status, &mine, err);
}

tr_status tr__engine_save(tr_engine *engine, const tr_save_options *options,
                          const tr_progress *progress, tr_error *err) {
    tr_saved_tensors model, optimizer;
    tr_state state = state_of(engine);
    written texts = {0};
    tr_status status = tr__engine_settle(engine, err);
    if (status != TR_OK) {
        return status;
    }
    status = list_all(engine, &model, &optimizer, &texts, err);
    if (status == TR_OK) {
        tr_checkpoint_input input = {
            .comm = tr__run_comm(engine->run),
            .out_folder = engine->settings->out,
            .folder = options->folder,
            .bytes = options->bytes,
            .byte_count = options->byte_count,
            .keep = engine->settings->keep,
            .anew = engine->anew,
            .branches = engine->own_until < INT64_MAX,
            .own_until = engine->own_until,
            .state = &state,
            .config = texts.config,
            .adapter = texts.adapter,
            .texts = texts.more,
            .text_count = texts.more_count,
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
    if (status == TR_OK && !options->folder) {
        engine->anew = false;
        engine->own_until = INT64_MAX;
    }
    tr__saved_free(&model);
    tr__saved_free(&optimizer);
    release(&texts);
    return status;
}

tr_status tr_engine_save(tr_engine *engine, tr_error *err) {
    tr_status status =
        tr__engine_enter(engine, engine, "tr_engine_save", "engine", err);
    if (status == TR_OK) {
        status = tr__engine_save(engine, &(tr_save_options){0}, &(tr_progress){0}, err);
        tr__engine_leave(engine, status, err);
    }
    return status;
}

tr_status tr_engine_save_as(tr_engine *engine, const tr_save_options *options,
                            tr_error *err) {
    static const char name[] = "tr_engine_save_as";
    static const tr_sized known = {"tr_save_options", "TR_SAVE_OPTIONS_INIT",
                                   sizeof(tr_save_options), 0};
    tr_status status = tr__need_sized(options, &known, name, err);
    if (status == TR_OK && options->byte_count > 0) {
        status = tr__need(options->bytes, name, "bytes", err);
    }
    if (status == TR_OK) {
        status = tr__engine_enter(engine, engine, name, "engine", err);
    }
    if (status == TR_OK) {
        status = tr__engine_save(engine, options, &(tr_progress){0}, err);
        tr__engine_leave(engine, status, err);
    }
    return status;
}
