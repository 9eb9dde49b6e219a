// What models are for, and what that makes of their units and samples.
#include "base/batch.h"
#include "models/labels.h"
#include "models/models.h"
#include "models/units.h"

#include <stdio.h>
#include <string.h>

enum {
    TOKENS_OF_TEXT = 8, // at least, of the texts that share a row, on the average
};

const char *const tr__task_names[TR_TASKS] = {"causal_lm", "masked_lm",
                                              "classification", "contrastive"};

// The ends of the names of transformers' classes.
static const char *const class_ends[TR_TASKS] = {"ForCausalLM", "ForMaskedLM",
                                                 "ForSequenceClassification", "Model"};

static const tr_text_model *texts_of(const tr_model *model) {
    const tr_units *own = model->owned;
    return own->architecture->texts;
}

static const tr_task_settings *settings_of(const tr_model *model) {
    const tr_text_model *texts = texts_of(model);
    const tr_units *own = model->owned;
    return texts ? texts->task(own->config) : NULL;
}

bool tr__model_is_encoder(const tr_model *model) {
    const tr_text_model *texts = texts_of(model);
    return texts && texts->encoder;
}

int64_t tr__model_types(const tr_model *model) {
    const tr_text_model *texts = texts_of(model);
    const tr_units *own = model->owned;
    return texts && texts->types ? texts->types(own->config) : 0;
}

bool tr__model_reads_texts(const tr_model *model) {
    const tr_task_settings *settings = settings_of(model);
    return settings && settings->task != TR_TASK_CAUSAL_LM;
}

bool tr__model_is_masked(const tr_model *model) {
    const tr_task_settings *settings = settings_of(model);
    return settings && settings->task == TR_TASK_MASKED_LM;
}

void tr__model_set_length(tr_model *model, int64_t tokens, bool packed) {
    const tr_task_settings *settings = settings_of(model);
    if (!tr__model_reads_texts(model)) {
        model->batch = packed ? tr_batch_packed(tokens) : tr_batch_tokens(tokens);
        return;
    }
    if (settings->task == TR_TASK_MASKED_LM) {
        model->batch = settings->next_sentence ? tr__batch_masked_pairs(tokens)
                                               : tr_batch_masked(tokens);
        return;
    }
    if (settings->contrast.texts > 0) {
        int64_t group = settings->contrast.texts;
        model->batch = tr_batch_labelled(tokens * group, group,
                                         tr__model_types(model) > 0, TR_LABELS_NONE, 0);
        return;
    }
    int64_t texts = packed && tokens > TOKENS_OF_TEXT ? tokens / TOKENS_OF_TEXT : 1;
    model->batch = tr_batch_labelled(tokens, texts, tr__model_types(model) > 0,
                                     settings->labels.kind, settings->labels.count);
}

const tr_embedding_way *tr__model_embedding(const tr_model *model) {
    const tr_task_settings *settings = settings_of(model);
    return settings && settings->task == TR_TASK_CONTRASTIVE ? &settings->embedding
                                                             : NULL;
}

int64_t tr__model_group(const tr_model *model) {
    const tr_task_settings *settings = settings_of(model);
    return settings ? settings->contrast.texts : 0;
}

void tr__model_set_groups(tr_model *model, int64_t groups) {
    tr_units *own = model->owned;
    own->architecture->texts->task(own->config)->contrast.groups = groups;
}

// ---- what a file says

tr_model_task tr__class_task(const json_t *keys, bool encoder) {
    const json_t *list = json_object_get(keys, "architectures");
    const char *name = json_string_value(json_array_get(list, 0));
    bool bare = name && !strstr(name, "For") && strstr(name, "Model");
    if (name && strstr(name, class_ends[TR_TASK_CLASSIFICATION])) {
        return TR_TASK_CLASSIFICATION;
    }
    if (!encoder) {
        return TR_TASK_CAUSAL_LM;
    }
    return bare ? TR_TASK_CONTRASTIVE : TR_TASK_MASKED_LM; // what BERT was trained for
}

tr_model_task tr__model_task(const tr_model *model) {
    const tr_text_model *texts = texts_of(model);
    const tr_units *own = model->owned;
    if (!texts) {
        return TR_TASK_CAUSAL_LM;
    }
    return own->others ? tr__class_task(own->others, texts->encoder)
                       : settings_of(model)->task;
}

tr_status tr__model_labels(const tr_model *model, tr_task_labels *out, tr_error *err) {
    const tr_units *own = model->owned;
    json_t *keys =
        own->others ? json_incref(own->others) : json_loads(own->config_json, 0, NULL);
    const tr_model_keys from = {keys, "model"};
    tr_status status = keys ? tr__labels_read(&from, out, err)
                            : tr_fail(err, TR_MEMORY, "no memory for a model's keys");
    if (status == TR_OK && out->count == 0 && own->others &&
        tr__model_task(model) == TR_TASK_CLASSIFICATION &&
        !tr__labels_number(out, 2)) { // transformers writes no more than others
        status = tr_fail(err, TR_MEMORY, "no memory for the names of labels");
    }
    json_decref(keys);
    return status;
}

bool tr__model_may_lack(const tr_model *model, const char *name) {
    const tr_text_model *texts = texts_of(model);
    bool found = false;
    for (int i = 0; texts && texts->heads[i] && !found; i++) {
        found = strncmp(name, texts->heads[i], strlen(texts->heads[i])) == 0;
    }
    return found;
}

// ---- setting a task

static tr_status refuse(const tr_model *model, tr_model_task task, const char *why,
                        tr_error *err) {
    return tr_fail(err, TR_USAGE, "task: \"%s\" is not there for a model of type %s%s",
                   tr__task_names[task], model->type, why);
}

static tr_status check(const tr_model *model, const tr_task_settings *settings,
                       tr_error *err) {
    const tr_text_model *texts = texts_of(model);
    tr_model_task task = settings->task;
    if (texts && texts->encoder && settings->next_sentence && !texts->pretraining) {
        return tr_fail(err, TR_USAGE,
                       "mlm.next_sentence: a model of type %s has no head for it; "
                       "those of type bert have one",
                       model->type);
    }
    if (!texts) {
        return task == TR_TASK_CAUSAL_LM
                   ? TR_OK
                   : refuse(model, task, ", which knows causal_lm alone", err);
    }
    if (texts->encoder && task == TR_TASK_CAUSAL_LM) {
        return refuse(model, task,
                      ", whose tokens see those behind them; it knows masked_lm, "
                      "classification and contrastive",
                      err);
    }
    return texts->encoder || task != TR_TASK_MASKED_LM
               ? TR_OK
               : refuse(model, task,
                        ", whose tokens see only those before them; it knows "
                        "causal_lm, classification and contrastive",
                        err);
}

// What config.json says of the task.
static tr_status write_keys(tr_units *own, const tr_task_settings *settings,
                            tr_error *err) {
    char class[64];
    snprintf(class, sizeof class, "%s%s", own->architecture->texts->classes,
             settings->next_sentence ? own->architecture->texts->pretraining
                                     : class_ends[settings->task]);
    if (settings->task == TR_TASK_CAUSAL_LM) {
        return TR_OK; // as its architecture writes it
    }
    tr_status status =
        tr__units_set_json(own, "architectures", json_pack("[s]", class), err);
    json_t *keys = json_object();
    const char *name;
    json_t *value;
    if (settings->task == TR_TASK_CLASSIFICATION && status == TR_OK &&
        !(keys && tr__labels_write(&own->labels, keys))) {
        status = tr_fail(err, TR_MEMORY, "no memory for the names of labels");
    }
    json_object_foreach(keys, name, value) {
        status = status == TR_OK
                     ? tr__units_set_json(own, name, json_incref(value), err)
                     : status;
    }
    json_decref(keys);
    return status;
}

tr_status tr__model_set_task(tr_model *model, const tr_task_settings *settings,
                             tr_error *err) {
    tr_units *own = model->owned;
    tr_status status = check(model, settings, err);
    if (status != TR_OK || !texts_of(model)) {
        return status;
    }
    bool classifies = settings->task == TR_TASK_CLASSIFICATION;
    const tr_task_labels none = {0};
    tr__labels_release(&own->labels);
    if (!tr__labels_copy(classifies ? &settings->labels : &none, &own->labels)) {
        return tr_fail(err, TR_MEMORY, "no memory for the names of labels");
    }
    tr_task_settings *to = own->architecture->texts->task(own->config);
    *to = *settings;
    to->labels = own->labels;
    model->label_kind = own->labels.kind;
    model->labels = own->labels.count;
    model->label_names = (const char *const *)own->labels.names;
    model->classifier = classifies && own->labels.kind != TR_LABELS_VALUE;
    model->embedding_width = settings->task == TR_TASK_CONTRASTIVE
                                 ? own->architecture->texts->width(own->config)
                                 : 0;
    own->architecture->texts->set_units(own);
    return write_keys(own, settings, err);
}
