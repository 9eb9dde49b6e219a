// The table of architectures.
#include "models/models.h"

#include "models/units.h"

#include <string.h>

static const tr_architecture *const architectures[] = {
    &tr__architecture_gpt2,   &tr__architecture_llama, &tr__architecture_mistral,
    &tr__architecture_qwen2,  &tr__architecture_qwen3, &tr__architecture_mlp,
    &tr__architecture_resnet,
};
enum { COUNT = sizeof architectures / sizeof *architectures };

void tr_model_destroy(tr_model *model) {
    if (model && model->release) {
        model->release(model);
    }
}

int64_t tr_model_targets(const tr_model *model) {
    return tr_shape_count(model->target.shape);
}

static const tr_architecture *find(const char *type) {
    for (int i = 0; i < COUNT; i++) {
        if (type && strcmp(architectures[i]->type, type) == 0) {
            return architectures[i];
        }
    }
    return NULL;
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
    return which < 0 ? TR_USAGE
                     : architectures[which]->from_json(&keys, strict, out, err);
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
    return architecture && architecture->vocabulary;
}

bool tr__model_slices(const tr_model *model) {
    return tr__model_type_reads_tokens(model->type);
}

const tr_dropout_key *tr__model_dropout(const tr_model *model) {
    const tr_architecture *architecture = find(model->type);
    return architecture ? architecture->dropout : NULL;
}

tr_status tr__model_resize(tr_model *model, int64_t vocabulary, tr_error *err) {
    tr_units *own = model->owned;
    if (!tr__model_type_reads_tokens(model->type)) {
        return tr_fail(err, TR_USAGE, "a model of type %s has no vocabulary",
                       model->type);
    }
    *own->architecture->vocabulary(own->config) = vocabulary;
    model->classes = vocabulary;
    return tr__units_set_key(own, "vocab_size", vocabulary, err);
}

tr_status tr__model_context(tr_model *model, int64_t positions, tr_error *err) {
    tr_units *own = model->owned;
    int64_t most = own->architecture->positions(own->config);
    if (positions < 1 || positions > most) {
        return tr_fail(err, TR_USAGE,
                       "samples of %lld tokens: the model has positions for 1 to %lld",
                       (long long)positions, (long long)most);
    }
    model->input.shape = model->target.shape = TR_SHAPE1(positions);
    return TR_OK;
}

tr_status tr__model_slice(tr_model *model, int slices, tr_error *err) {
    tr_units *own = model->owned;
    if (!tr__model_slices(model)) {
        return slices <= 1
                   ? TR_OK
                   : tr_fail(err, TR_USAGE,
                             "execution.vocabulary_slices is %d: a model of type %s "
                             "has no vocabulary to cut into slices; leave it out, or "
                             "set it to 1",
                             slices, model->type);
    }
    if (slices > model->classes) {
        return tr_fail(err, TR_USAGE,
                       "execution.vocabulary_slices is %d, more than the model's "
                       "vocabulary of %lld",
                       slices, (long long)model->classes);
    }
    *own->architecture->slices(own->config) = slices;
    return TR_OK;
}
