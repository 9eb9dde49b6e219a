// The table of architectures.
#include "models/models.h"

#include "base/checked.h"
#include "base/memory.h"
#include "files/safetensors/json.h"
#include "models/units.h"

#include <string.h>

static const tr_architecture *const architectures[] = {
    &tr__architecture_gpt2,   &tr__architecture_llama, &tr__architecture_mistral,
    &tr__architecture_qwen2,  &tr__architecture_qwen3, &tr__architecture_mlp,
    &tr__architecture_resnet, &tr__architecture_bert,  &tr__architecture_roberta,
};
enum { COUNT = sizeof architectures / sizeof *architectures };

// How many rows of the vocabulary are tokens, where files have more.
static const char unpadded[] = "unpadded_vocab_size";

int64_t tr_model_targets(const tr_model *model) {
    int64_t most = 0;
    for (int i = 0; model && i < model->batch.count; i++) {
        const tr_batch_tensor *tensor = &model->batch.tensor[i];
        if (tensor->role == TR_ROLE_TARGET) {
            most = tr__max_i64(most, tr_shape_count(tensor->desc.shape));
        }
    }
    return most;
}

bool tr__model_reads_tokens(const tr_model *model) {
    return tr_batch_input(&model->batch)->desc.dtype == TR_I32;
}

static const tr_architecture *find(const char *type) {
    for (int i = 0; i < COUNT; i++) {
        if (type && strcmp(architectures[i]->type, type) == 0) {
            return architectures[i];
        }
    }
    return NULL;
}

// Of a padded vocabulary, what of it the model uses.
static tr_status unpad(tr_model *model, const tr_model_keys *keys, tr_error *err) {
    int64_t rows = model->classes, tokens = rows;
    const tr_model_field field = {unpadded, 1, (double)rows, &tokens, NULL};
    tr_status status = tr__fields_read(keys, &field, 1, err);
    return status == TR_OK && tokens < rows ? tr__model_resize(model, tokens, rows, err)
                                            : status;
}

// Padding is none of an architecture's business.
static tr_status from_keys(const tr_architecture *architecture,
                           const tr_model_keys *keys, bool strict, tr_model **out,
                           tr_error *err) {
    if (!architecture->tokens || !json_object_get(keys->object, unpadded)) {
        return architecture->from_json(keys, strict, out, err);
    }
    tr_model *model = NULL;
    json_t *own = json_copy((json_t *)keys->object);
    if (!own || json_object_del(own, unpadded) != 0) {
        json_decref(own);
        return tr_fail(err, TR_MEMORY, "no memory for a model's keys");
    }
    tr_model_keys without = {own, keys->origin};
    tr_status status = architecture->from_json(&without, strict, &model, err);
    json_decref(own);
    if (status == TR_OK) {
        status = unpad(model, keys, err);
    }
    if (status != TR_OK) {
        tr_model_destroy(model);
        return status;
    }
    *out = model;
    return TR_OK;
}

tr_status tr__model_from_json(const json_t *object, const char *origin, bool strict,
                              tr_model **out, tr_error *err) {
    tr_model_keys keys = {object, origin};
    const char *types[COUNT];
    if (!json_is_object(object)) {
        return tr_fail(err, TR_USAGE, "%s: must be an object with a \"model_type\"",
                       origin);
    }
    for (int i = 0; i < COUNT; i++) {
        types[i] = architectures[i]->type;
    }
    int which = tr__field_choice(&keys, "model_type", types, COUNT, -2, err);
    if (which == -2) {
        return tr_fail(err, TR_USAGE,
                       "%s: has no \"model_type\", such as \"gpt2\", \"llama\" or "
                       "\"mlp\"",
                       origin);
    }
    if (which < 0) {
        return TR_USAGE;
    }
    tr_status status = from_keys(architectures[which], &keys, strict, out, err);
    if (status == TR_OK && !strict) { // of a file, whose keys are its checkpoints', too
        tr_units *own = (*out)->owned;
        own->others = json_incref((json_t *)object);
    }
    return status;
}

// ---- presets

json_t *tr__model_preset(const char *name) {
    for (int i = 0; i < COUNT; i++) {
        const tr_model_preset *preset = architectures[i]->presets;
        for (; preset && preset->name; preset++) {
            if (strcmp(preset->name, name) == 0) {
                return json_loads(preset->keys, 0, NULL);
            }
        }
    }
    return NULL;
}

size_t tr__model_preset_names(const char *names[TR_MODEL_PRESETS_MAX]) {
    size_t count = 0;
    for (int i = 0; i < COUNT; i++) {
        const tr_model_preset *preset = architectures[i]->presets;
        for (; preset && preset->name && count < TR_MODEL_PRESETS_MAX; preset++) {
            names[count++] = preset->name;
        }
    }
    return count;
}

// ---- what an architecture allows

bool tr__model_type_reads_tokens(const char *type) {
    const tr_architecture *architecture = find(type);
    return architecture && architecture->tokens;
}

const tr_dropout_key *tr__model_dropout(const tr_model *model) {
    const tr_architecture *architecture = find(model->type);
    return architecture ? architecture->dropout : NULL;
}

tr_status tr__model_resize(tr_model *model, int64_t vocabulary, int64_t rows,
                           tr_error *err) {
    tr_units *own = model->owned;
    bool padded = rows > vocabulary;
    if (!tr__model_type_reads_tokens(model->type)) {
        return tr_fail(err, TR_USAGE, "a model of type %s has no vocabulary",
                       model->type);
    }
    *own->architecture->tokens->vocabulary(own->config) = vocabulary;
    model->classes = vocabulary;
    model->padded_classes = padded ? rows : 0;
    tr_status status =
        tr__units_set_key(own, "vocab_size", padded ? rows : vocabulary, err);
    return status == TR_OK
               ? tr__units_set_key(own, unpadded, padded ? vocabulary : -1, err)
               : status;
}

// What the file that the model comes from has beside the model's own keys, and the name
// of transformers' class, which other programs ask for. False: no memory.
static bool add_others(json_t *keys, const tr_model *model,
                       const tr_architecture *architecture) {
    const tr_units *own = model->owned;
    const char *name;
    json_t *value;
    bool good = true;
    json_object_foreach(own->others, name, value) {
        bool ours = json_object_get(keys, name) || strcmp(name, unpadded) == 0;
        good = good && (ours || json_object_set(keys, name, value) == 0);
    }
    if (architecture->hugging_face && !json_object_get(keys, "architectures")) {
        good = good &&
               json_object_set_new(keys, "architectures",
                                   json_pack("[s]", architecture->hugging_face)) == 0;
    }
    return good;
}

char *tr__model_config(const tr_model *model, tr_dtype weights) {
    const char *name = weights == TR_BF16 ? "bfloat16" : "float32";
    if (!model->config_json || !tr__model_type_reads_tokens(model->type)) {
        return tr__strdup(model->config_json ? model->config_json : "{}\n");
    }
    const tr_architecture *architecture = find(model->type);
    json_t *keys = json_loads(model->config_json, 0, NULL);
    bool good = keys && add_others(keys, model, architecture) &&
                json_object_set_new(keys, "dtype", json_string(name)) == 0 &&
                json_object_set_new(keys, "torch_dtype", json_string(name)) == 0;
    char *text = good ? tr__json_text(keys, JSON_INDENT(2)) : NULL;
    json_decref(keys);
    return text;
}

int64_t tr__model_positions(const tr_model *model) {
    const tr_units *own = model->owned;
    return own->architecture->tokens->positions(own->config);
}

tr_status tr__model_slice(tr_model *model, int slices, tr_error *err) {
    tr_units *own = model->owned;
    if (!tr__model_type_reads_tokens(model->type)) {
        return slices <= 1
                   ? TR_OK
                   : tr_fail(err, TR_USAGE,
                             "execution.vocabulary_slices is %d: a model of type %s "
                             "has no vocabulary to cut into slices; leave it out, or "
                             "set it to 1",
                             slices, model->type);
    }
    if (slices > 1 && !own->architecture->tokens->slices) {
        return tr_fail(err, TR_USAGE,
                       "execution.vocabulary_slices is %d: a model of type %s uses its "
                       "vocabulary as a whole; leave it out, or set it to 1",
                       slices, model->type);
    }
    if (!own->architecture->tokens->slices) {
        return TR_OK;
    }
    if (slices > model->classes) {
        return tr_fail(err, TR_USAGE,
                       "execution.vocabulary_slices is %d, more than the model's "
                       "vocabulary of %lld",
                       slices, (long long)model->classes);
    }
    *own->architecture->tokens->slices(own->config) = slices;
    return TR_OK;
}
