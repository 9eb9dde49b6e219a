// "task" and "pooling": what the model is for, and what its folder says of that.
#include "models/labels.h"
#include "models/models.h"
#include "models/sentence.h"
#include "run/resolve/data_options.h"
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

// The keys of a model that is not one of the library's, or reads no tokens.
static tr_status without_texts(const tr_run *run, tr_error *err) {
    const char *key = tr__config_is_given(run->config, pooling_key) ? pooling_key
                      : tr__config_is_given(run->config, task_key)  ? task_key
                                                                    : NULL;
    return !key ? TR_OK
                : tr_fail(err, TR_USAGE,
                          "%s: has no meaning for a model of type %s, which reads no "
                          "texts; remove it",
                          key, run->model->type);
}

static tr_model_task task_of(const tr_run *run) {
    if (!tr__config_is_given(run->config, task_key)) {
        return tr__model_task(run->own_model);
    }
    const char *name = tr__config_text(run->config, task_key);
    return (tr_model_task)index_of(tr__task_names, TR_TASKS, name);
}

// ---- what is read

// Those of the training records, which make the labels of a model that has none.
static tr_status survey_labels(tr_run *run, tr_task_labels *labels, tr_error *err) {
    tr_label_survey found = {0};
    tr_status status = tr__run_survey_labels(run, labels->kind, &found, err);
    if (status != TR_OK) {
        return status;
    }
    tr_task_labels made = {found.kind, found.count, found.names};
    bool good = found.names ? tr__labels_copy(&made, labels)
                            : tr__labels_number(labels, found.count);
    labels->kind = found.kind;
    tr__label_survey_release(&found);
    return good ? TR_OK : tr_fail(err, TR_MEMORY, "no memory for the names of labels");
}

static tr_status read_labels(tr_run *run, tr_task_labels *labels, tr_error *err) {
    tr_status status = tr__model_labels(run->own_model, labels, err);
    if (status == TR_OK && labels->count == 0) {
        status = survey_labels(run, labels, err);
    }
    labels->kind = labels->kind == TR_LABELS_NONE ? TR_LABELS_CLASS : labels->kind;
    return status;
}

static tr_status read_way(tr_run *run, tr_sentence *sentence, tr_error *err) {
    tr_status status =
        run->model_folder ? tr__sentence_read(run->model_folder, sentence, err) : TR_OK;
    if (status == TR_OK && tr__config_is_given(run->config, pooling_key)) {
        const char *name = tr__config_text(run->config, pooling_key);
        sentence->way.pooling = (tr_text_pooling)index_of(poolings, 3, name);
    }
    return status;
}

// ---- what is recorded

static tr_status record_packing(tr_run *run, const tr_task_settings *settings,
                                tr_error *err) {
    const char *format = tr__config_text(run->config, "data.format");
    bool texts = strcmp(format, "jsonl") == 0 || strcmp(format, "text") == 0;
    bool alone = settings->task == TR_TASK_CLASSIFICATION || settings->next_sentence;
    if (settings->next_sentence && tr__config_bool(run->config, "data.packing")) {
        return tr_fail(
            err, TR_USAGE,
            "data.packing: a pair of mlm.next_sentence has a row of its own, "
            "which its spans fill; remove it");
    }
    if (!texts || tr__config_is_given(run->config, "data.packing")) {
        return TR_OK;
    }
    return tr__config_resolve_bool(
        run->config, "data.packing", !alone, TR_ORIGIN_DERIVED,
        settings->next_sentence ? "a sample is a pair of spans"
        : alone                 ? "a sample is a text"
                                : "an encoder sees each text alone",
        err);
}

static tr_status record(tr_run *run, const tr_task_settings *settings,
                        const tr_sentence *sentence, tr_error *err) {
    tr_status status = TR_OK;
    if (!tr__config_is_given(run->config, task_key)) {
        status = tr__config_resolve_text(
            run->config, task_key, tr__task_names[settings->task], TR_ORIGIN_DERIVED,
            "of the model's class", err);
    }
    if (status == TR_OK && settings->task == TR_TASK_CONTRASTIVE &&
        !tr__config_is_given(run->config, pooling_key)) {
        status = tr__config_resolve_text(
            run->config, pooling_key, poolings[sentence->way.pooling],
            TR_ORIGIN_DERIVED, sentence->there ? "the model's folder" : "left out",
            err);
    }
    return status == TR_OK ? record_packing(run, settings, err) : status;
}

static void read_contrast(const tr_run *run, tr_contrastive_way *out) {
    const tr_config *from = run->config;
    out->temperature = tr__config_number(from, "contrastive.temperature");
    out->learned = tr__config_bool(from, "contrastive.learned");
    out->symmetric = tr__config_bool(from, "contrastive.symmetric");
    out->mask_equal =
        strcmp(tr__config_text(from, "contrastive.duplicates"), "mask") == 0;
}

tr_status tr__run_resolve_task(tr_run *run, int64_t *length, tr_error *err) {
    tr_sentence sentence = {.way = {TR_TEXT_MEAN, true}};
    tr_task_settings settings = {0};
    *length = 0;
    if (!run->own_model || !tr__model_type_reads_tokens(run->own_model->type)) {
        return without_texts(run, err);
    }
    settings.task = task_of(run);
    tr_status status = TR_OK;
    if (settings.task != TR_TASK_CONTRASTIVE &&
        tr__config_is_given(run->config, pooling_key)) {
        return tr_fail(err, TR_USAGE,
                       "pooling: has no meaning for task \"%s\" of a model of type %s; "
                       "remove it",
                       tr__task_names[settings.task], run->model->type);
    }
    if (settings.task == TR_TASK_CONTRASTIVE) {
        status = read_way(run, &sentence, err);
        if (status == TR_OK) {
            status = tr__run_survey_groups(run, &settings.contrast.texts, err);
        }
        read_contrast(run, &settings.contrast);
        *length = sentence.length;
    } else if (settings.task == TR_TASK_CLASSIFICATION) {
        status = read_labels(run, &settings.labels, err);
    }
    settings.embedding = sentence.way;
    if (settings.task == TR_TASK_MASKED_LM &&
        strcmp(tr__config_text(run->config, "data.format"), "tokens") != 0) {
        settings.masked = tr__config_number(run->config, "mlm.probability");
        settings.next_sentence = tr__config_bool(run->config, "mlm.next_sentence");
    }
    double told = tr__config_number(run->config, "mlm.mask") +
                  tr__config_number(run->config, "mlm.random");
    if (status == TR_OK && told > 1) {
        status = tr_fail(err, TR_USAGE,
                         "mlm.mask and mlm.random are %g together, and shares of one "
                         "whole: at most 1",
                         told);
    }
    if (status == TR_OK) {
        status = tr__model_set_task(run->own_model, &settings, err);
    }
    tr__labels_release(&settings.labels);
    return status == TR_OK && settings.task != TR_TASK_CAUSAL_LM
               ? record(run, &settings, &sentence, err)
               : status;
}

tr_status tr__run_resolve_groups(tr_run *run, tr_error *err) {
    int64_t groups = run->request.train_batch_size;
    const tr_batches *batches = &run->settings.batches;
    if (!run->own_model || !tr__model_type_reads_tokens(run->own_model->type) ||
        tr__model_group(run->own_model) == 0) {
        return TR_OK;
    }
    if (batches->adaptive || batches->count > 0) {
        return tr_fail(err, TR_USAGE,
                       "task: \"contrastive\" needs one batch size for the whole run: "
                       "leave out batch_schedule and adaptive_batch");
    }
    if (groups < 2 && tr__model_group(run->own_model) < 3) {
        return tr_fail(
            err, TR_USAGE,
            "train_batch_size is %lld, and records have no negatives: a "
            "positive is told from those of the other pairs of its batch, so "
            "there must be some",
            (long long)groups);
    }
    tr__model_set_groups(run->own_model, groups);
    return TR_OK;
}
