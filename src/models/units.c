#include "models/units.h"

#include "base/memory.h"
#include "files/safetensors/json.h"
#include "models/adapter.h"
#include "models/labels.h"
#include "models/models.h"

#include <stdio.h>
#include <string.h>

static void release(tr_model *model) {
    tr_units *own = model->owned;
    tr__free(own->units);
    tr__free(own->texts);
    tr__free(own->config);
    tr__free(own->parts);
    tr__free(own->config_json);
    tr__adapter_destroy(own->adapter);
    json_decref(own->others);
    tr__labels_release(&own->labels);
    tr__free(own);
}

tr_units *tr__units_create(const tr_architecture *architecture, int count,
                           const void *config, size_t bytes) {
    tr_units *own = tr__calloc(1, sizeof *own);
    if (!own) {
        return NULL;
    }
    own->architecture = architecture;
    own->model.size = sizeof own->model;
    own->model.type = architecture->type;
    own->model.owned = own;
    own->model.release = release;
    own->model.token_tensors =
        architecture->tokens ? architecture->tokens->tensors : NULL;
    own->model.unit_count = count;
    own->units = tr__calloc((size_t)count, sizeof *own->units);
    own->texts = tr__calloc((size_t)count, sizeof *own->texts);
    own->config = tr__calloc(1, bytes);
    own->model.units = own->units;
    if (!own->units || !own->texts || !own->config) {
        release(&own->model);
        return NULL;
    }
    memcpy(own->config, config, bytes);
    return own;
}

bool tr__units_parts(tr_units *units, int count, size_t bytes) {
    units->parts = tr__calloc((size_t)count, bytes);
    return units->parts != NULL;
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

tr_status tr__units_set_key(tr_units *own, const char *key, int64_t value,
                            tr_error *err) {
    json_t *keys = json_loads(own->config_json, 0, NULL);
    bool good = keys != NULL;
    if (good && value < 0) {
        json_object_del(keys, key);
    } else if (good) {
        good = json_object_set_new(keys, key, json_integer(value)) == 0;
    }
    return put_config(own, keys, good, err);
}

tr_status tr__units_set_json(tr_units *own, const char *key, json_t *value,
                             tr_error *err) {
    json_t *keys = value ? json_loads(own->config_json, 0, NULL) : NULL;
    if (!keys) {
        json_decref(value);
    }
    return put_config(own, keys, keys && json_object_set_new(keys, key, value) == 0,
                      err);
}

tr_status tr__model_keep(tr_model *model, const json_t *object,
                         const char *const *names, size_t count, tr_model **out,
                         tr_error *err) {
    tr_units *own = model->owned;
    json_t *keys = json_loads(own->config_json, 0, NULL);
    bool good = keys != NULL;
    for (size_t i = 0; good && i < count; i++) {
        json_t *value = json_object_get(object, names[i]);
        if (value && !json_object_get(keys, names[i])) {
            good = json_object_set(keys, names[i], value) == 0;
        }
    }
    tr_status status = put_config(own, keys, good, err);
    if (status != TR_OK) {
        tr_model_destroy(model);
        return status;
    }
    *out = model;
    return TR_OK;
}

void tr_model_destroy(tr_model *model) {
    if (model && model->release) {
        model->release(model);
    }
}
