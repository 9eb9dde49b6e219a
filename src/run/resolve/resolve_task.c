// "task" and "pooling": what the model is for, and what its folder says of that.
#include "models/models.h"
#include "models/sentence.h"
#include "run/run.h"

#include <string.h>

static const char task_key[] = "task", pooling_key[] = "pooling";

static const char *const poolings[] = {"mean", "cls", "last"}; // tr_text_pooling

static int index_of(const char *const *names, int count, const char *name) {
    int at = 0;
    while (at < count && strcmp(names[at], name) != 0) {
        at++;
    }
    return at;
}

// The keys of a model that is not one of the library's, or no encoder.
static tr_status without_encoder(const tr_run *run, tr_error *err) {
    if (tr__config_is_given(run->config, pooling_key)) {
        return tr_fail(err, TR_USAGE,
                       "pooling: has no meaning for a model of type %s, which gives no "
                       "embeddings of texts; remove it",
                       run->model->type);
    }
    if (!tr__config_is_given(run->config, task_key)) {
        return TR_OK;
    }
    if (!run->own_model || !tr__model_type_reads_tokens(run->own_model->type)) {
        return tr_fail(err, TR_USAGE,
                       "task: has no meaning for a model of type %s; remove it",
                       run->model->type);
    }
    const char *name = tr__config_text(run->config, task_key);
    int task = index_of(tr__task_names, TR_TASKS, name);
    return tr__model_set_task(run->own_model, (tr_model_task)task,
                              (tr_embedding_way){0}, err);
}

static tr_status record(tr_run *run, tr_model_task task, const tr_sentence *sentence,
                        tr_error *err) {
    tr_status status = TR_OK;
    if (!tr__config_is_given(run->config, task_key)) {
        status =
            tr__config_resolve_text(run->config, task_key, tr__task_names[task],
                                    TR_ORIGIN_DERIVED, "of the model's class", err);
    }
    if (status == TR_OK && !tr__config_is_given(run->config, pooling_key)) {
        status = tr__config_resolve_text(
            run->config, pooling_key, poolings[sentence->way.pooling],
            TR_ORIGIN_DERIVED, sentence->there ? "the model's folder" : "left out",
            err);
    }
    const char *format = tr__config_text(run->config, "data.format");
    bool texts = strcmp(format, "jsonl") == 0 || strcmp(format, "text") == 0;
    if (status == TR_OK && texts && !tr__config_is_given(run->config, "data.packing")) {
        status = tr__config_resolve_bool(run->config, "data.packing", true,
                                         TR_ORIGIN_DERIVED,
                                         "an encoder sees each text alone", err);
    }
    return status;
}

tr_status tr__run_resolve_task(tr_run *run, int64_t *length, tr_error *err) {
    tr_sentence sentence = {.way = {TR_TEXT_MEAN, true}};
    *length = 0;
    if (!run->own_model || !tr__model_is_encoder(run->own_model)) {
        return without_encoder(run, err);
    }
    tr_status status = run->model_folder
                           ? tr__sentence_read(run->model_folder, &sentence, err)
                           : TR_OK;
    if (status != TR_OK) {
        return status;
    }
    if (tr__config_is_given(run->config, pooling_key)) {
        const char *name = tr__config_text(run->config, pooling_key);
        sentence.way.pooling = (tr_text_pooling)index_of(poolings, 3, name);
    }
    tr_model_task task = tr__model_task(run->own_model);
    if (tr__config_is_given(run->config, task_key)) {
        const char *name = tr__config_text(run->config, task_key);
        task = (tr_model_task)index_of(tr__task_names, TR_TASKS, name);
    }
    *length = sentence.length;
    status = tr__model_set_task(run->own_model, task, sentence.way, err);
    return status == TR_OK ? record(run, task, &sentence, err) : status;
}

tr_status tr__run_check_trained(const tr_run *run, tr_error *err) {
    return run->model->embedding_width == 0
               ? TR_OK
               : tr_fail(
                     err, TR_USAGE,
                     "task: \"contrastive\" cannot be trained yet; tranche evaluate "
                     "DIR --data FILE --embeddings OUT.npy gives embeddings of "
                     "texts");
}
