// Lists of units from an architecture's numbers.
#include "models/units.h"

#include "base/memory.h"
#include "ckpt/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void release(tr_model *model) {
    tr_units *own = model->owned;
    tr__free(own->units);
    tr__free(own->texts);
    tr__free(own->layers);
    tr__free(own->blocks);
    tr__free(own->config_json);
    tr__free(own);
}

void tr_model_destroy(tr_model *model) {
    if (model && model->release) {
        model->release(model);
    }
}

int64_t tr_model_targets(const tr_model *model) {
    return tr_shape_count(model->target.shape);
}

tr_units *tr__units_create(int units) {
    tr_units *own = tr__calloc(1, sizeof *own);
    if (!own) {
        return NULL;
    }
    own->model.owned = own;
    own->model.release = release;
    own->model.unit_count = units;
    own->units = tr__calloc((size_t)units, sizeof *own->units);
    own->texts = tr__calloc((size_t)units, sizeof *own->texts);
    own->model.units = own->units;
    if (!own->units || !own->texts) {
        release(&own->model);
        return NULL;
    }
    return own;
}

bool tr__units_blocks(tr_units *units, int count) {
    units->blocks = tr__calloc((size_t)count, sizeof *units->blocks);
    return units->blocks != NULL;
}

void tr__units_set(tr_units *own, int index, tr_model_unit unit) {
    char(*text)[64] = own->texts[index];
    snprintf(text[0], sizeof text[0], "%s", unit.name);
    snprintf(text[1], sizeof text[1], "%s", unit.kind);
    snprintf(text[2], sizeof text[2], "%s", unit.prefix);
    unit.name = text[0];
    unit.kind = text[1];
    unit.prefix = text[2];
    own->units[index] = unit;
}

tr_status tr__units_finish(tr_units *own, json_t *json, tr_model **out, tr_error *err) {
    own->config_json = tr__json_text(json, JSON_INDENT(2));
    json_decref(json);
    if (!own->config_json) {
        release(&own->model);
        return tr_fail(err, TR_MEMORY, "no memory for a model's config.json");
    }
    own->model.config_json = own->config_json;
    *out = &own->model;
    return TR_OK;
}

// `keys` as config.json, which takes them over. good: they are all there.
static tr_status put_config(tr_units *own, json_t *keys, bool good, tr_error *err) {
    char *text = good ? tr__json_text(keys, JSON_INDENT(2)) : NULL;
    json_decref(keys);
    if (!text) {
        return tr_fail(err, TR_MEMORY, "no memory for a model's config.json");
    }
    tr__free(own->config_json);
    own->config_json = text;
    own->model.config_json = text;
    return TR_OK;
}

tr_status tr__model_keep(tr_model *model, const json_t *object,
                         const char *const *names, size_t count, tr_error *err) {
    tr_units *own = model->owned;
    json_t *keys = json_loads(own->config_json, 0, NULL);
    bool good = keys != NULL;
    for (size_t i = 0; good && i < count; i++) {
        json_t *value = json_object_get(object, names[i]);
        if (value && !json_object_get(keys, names[i])) {
            good = json_object_set(keys, names[i], value) == 0;
        }
    }
    return put_config(own, keys, good, err);
}

static json_t *gpt2_json(const tr_gpt2_config *c) {
    return json_pack(
        "{s:s, s:[s], s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:f, s:f, s:f, s:f, s:f, "
        "s:b}",
        "model_type", "gpt2", "architectures", "GPT2LMHeadModel", "n_layer",
        (json_int_t)c->n_layer, "n_embd", (json_int_t)c->n_embd, "n_head",
        (json_int_t)c->n_head, "n_positions", (json_int_t)c->n_positions, "n_ctx",
        (json_int_t)c->n_positions, "vocab_size", (json_int_t)c->vocab_size, "n_inner",
        (json_int_t)c->n_inner, "activation_function",
        c->gelu_tanh ? "gelu_new" : "gelu", "layer_norm_epsilon", c->layer_norm_epsilon,
        "initializer_range", c->initializer_range, "resid_pdrop", c->resid_pdrop,
        "embd_pdrop", c->embd_pdrop, "attn_pdrop", c->attn_pdrop, "tie_word_embeddings",
        1);
}

tr_status tr__model_gpt2(const tr_gpt2_config *config, tr_model **out, tr_error *err) {
    tr_units *own = tr__units_create((int)config->n_layer + 2);
    if (!own) {
        return tr_fail(err, TR_MEMORY, "no memory for a model's units");
    }
    own->gpt2 = *config;
    const tr_gpt2_config *c = &own->gpt2;
    tr__units_set(own, 0,
                  (tr_model_unit){"embedding", "embedding", "transformer.",
                                  tr__gpt2_embedding, c});
    for (int i = 0; i < (int)c->n_layer; i++) {
        char name[32], prefix[48];
        snprintf(name, sizeof name, "h.%d", i);
        snprintf(prefix, sizeof prefix, "transformer.h.%d.", i);
        tr__units_set(own, i + 1,
                      (tr_model_unit){name, "block", prefix, tr__gpt2_block, c});
    }
    tr__units_set(own, (int)c->n_layer + 1,
                  (tr_model_unit){"head", "head", "transformer.", tr__gpt2_head, c});
    own->model.type = "gpt2";
    own->model.input = own->model.target =
        (tr_tensor_desc){TR_I32, TR_SHAPE1(c->n_positions)};
    own->model.classes = c->vocab_size;
    return tr__units_finish(own, gpt2_json(c), out, err);
}

tr_status tr__model_slice(tr_model *model, int slices, tr_error *err) {
    tr_units *own = model->owned;
    bool cuttable = strcmp(model->type, "gpt2") == 0;
    if (slices <= 1 && !cuttable) {
        return TR_OK;
    }
    if (!cuttable) {
        return tr_fail(err, TR_USAGE,
                       "execution.vocabulary_slices is %d: a model of type %s has no "
                       "vocabulary to cut into slices; leave it out, or set it to 1",
                       slices, model->type);
    }
    if (slices > own->gpt2.vocab_size) {
        return tr_fail(err, TR_USAGE,
                       "execution.vocabulary_slices is %d, more than the model's "
                       "vocabulary of %lld",
                       slices, (long long)own->gpt2.vocab_size);
    }
    own->gpt2.vocabulary_slices = slices;
    return TR_OK;
}

// Writes a number into config.json.
static tr_status set_key(tr_units *own, const char *key, int64_t value, tr_error *err) {
    json_t *keys = json_loads(own->config_json, 0, NULL);
    bool good = keys && json_object_set_new(keys, key, json_integer(value)) == 0;
    return put_config(own, keys, good, err);
}

tr_status tr__model_resize(tr_model *model, int64_t vocabulary, tr_error *err) {
    tr_units *own = model->owned;
    if (strcmp(model->type, "gpt2") != 0) {
        return tr_fail(err, TR_USAGE, "a model of type %s has no vocabulary",
                       model->type);
    }
    own->gpt2.vocab_size = vocabulary;
    model->classes = vocabulary;
    return set_key(own, "vocab_size", vocabulary, err);
}

static json_t *mlp_json(const tr_mlp_config *c) {
    json_t *sizes = json_array();
    for (int i = 0; i <= c->layers; i++) {
        if (json_array_append_new(sizes, json_integer(c->size[i])) != 0) {
            json_decref(sizes);
            return NULL;
        }
    }
    return json_pack("{s:s, s:o, s:s}", "model_type", "mlp", "layer_sizes", sizes,
                     "activation", "relu");
}

tr_status tr__model_mlp(const tr_mlp_config *config, tr_model **out, tr_error *err) {
    tr_units *own = tr__units_create(config->layers);
    if (own) {
        own->layers = tr__calloc((size_t)config->layers, sizeof *own->layers);
    }
    if (!own || !own->layers) {
        tr_model_destroy(own ? &own->model : NULL);
        return tr_fail(err, TR_MEMORY, "no memory for a model's layers");
    }
    for (int i = 0; i < config->layers; i++) {
        bool last = i + 1 == config->layers;
        tr_mlp_layer *layer = &own->layers[i];
        *layer = (tr_mlp_layer){config->size[i], config->size[i + 1], i == 0};
        char name[32], kind[64], prefix[32];
        snprintf(name, sizeof name, "layer.%d", i);
        snprintf(kind, sizeof kind, "%s %lld x %lld%s", last ? "head" : "hidden",
                 (long long)layer->in, (long long)layer->out, i ? "" : " first");
        snprintf(prefix, sizeof prefix, "layers.%d.", i);
        tr__units_set(own, i,
                      (tr_model_unit){name, kind, prefix,
                                      last ? tr__mlp_head : tr__mlp_hidden, layer});
    }
    own->model.type = "mlp";
    own->model.input = (tr_tensor_desc){TR_F32, TR_SHAPE1(config->size[0])};
    own->model.target = (tr_tensor_desc){TR_I32, {0}};
    own->model.classes = config->size[config->layers];
    own->model.classifier = true;
    return tr__units_finish(own, mlp_json(config), out, err);
}
