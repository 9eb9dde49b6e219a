#include "models/folder.h"

#include "base/files.h"
#include "base/memory.h"
#include "files/gguf/gguf.h"
#include "files/safetensors/adapter.h"
#include "models/adapter.h"
#include "models/models.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

enum { CONFIG_MAX_BYTES = 1 << 20 };

// transformers saves such weights in 4 bits with their sides exchanged, and nothing in
// the folder says so.
static tr_status refuse_exchanged(const char *path, const json_t *keys, tr_error *err) {
    const json_t *bits = json_object_get(keys, "quantization_config");
    const char *type = json_string_value(json_object_get(keys, "model_type"));
    if (!type || !tr__weights_are_in_out(type) ||
        !json_is_true(json_object_get(bits, "load_in_4bit"))) {
        return TR_OK;
    }
    return tr_fail(err, TR_USAGE,
                   "%s: quantization_config: weights of %s in 4 bits are not read yet, "
                   "because they lie there with their sides exchanged; save the model "
                   "in 16 or 32 bits (in transformers: model.dequantize() before "
                   "save_pretrained), and keep it in few bits by "
                   "\"quantization\": {\"base\": \"nf4\"}",
                   path, type);
}

tr_status tr__model_from_file(const char *path, tr_model **out, tr_error *err) {
    char *text = NULL;
    size_t bytes = 0;
    json_error_t problem;
    tr_status status = tr__gguf_refuse(path, err);
    if (status == TR_OK) {
        status = tr__file_read(path, CONFIG_MAX_BYTES, &text, &bytes, err);
    }
    if (status != TR_OK) {
        return status;
    }
    json_t *keys = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &problem);
    tr__free(text);
    if (!keys) {
        return tr_fail(err, TR_USAGE,
                       "%s:%d:%d: not valid JSON, as a model's config.json is: %.160s",
                       path, problem.line, problem.column, problem.text);
    }
    status = refuse_exchanged(path, keys, err);
    status =
        status == TR_OK ? tr__model_from_json(keys, path, false, out, err) : status;
    json_decref(keys);
    return status;
}

static tr_status from_plain_folder(const char *folder, tr_model **out, tr_error *err) {
    char path[PATH_MAX];
    tr_status status = tr__path_join(path, sizeof path, folder, "config.json", err);
    return status == TR_OK ? tr__model_from_file(path, out, err) : status;
}

static bool has_config(const char *folder) {
    char path[PATH_MAX];
    return tr__path_join(path, sizeof path, folder, "config.json", NULL) == TR_OK &&
           access(path, F_OK) == 0;
}

// The base's model with the folder's adapter. A checkpoint has a config.json of its
// own, which says what a head is for that the base lacks.
static tr_status from_adapter_folder(const char *folder, const char *base,
                                     tr_model **out, tr_error *err) {
    char own[PATH_MAX];
    tr_model *model = NULL;
    tr_adapter_config *adapter = NULL;
    tr_status status = base ? TR_OK : tr__adapter_base(folder, own, err);
    if (status == TR_OK) {
        const char *of = base ? base : own;
        status = from_plain_folder(has_config(folder) ? folder : of, &model, err);
    }
    if (status == TR_OK) {
        status = tr__adapter_from_folder(folder, model->type, &adapter, err);
    }
    if (status != TR_OK) {
        tr_model_destroy(model);
        return status;
    }
    tr__model_adapt(model, adapter);
    *out = model;
    return TR_OK;
}

tr_status tr__model_from_folder(const char *folder, const char *base, tr_model **out,
                                tr_error *err) {
    if (tr__is_adapter_folder(folder)) {
        return from_adapter_folder(folder, base, out, err);
    }
    return base ? tr_fail(err, TR_USAGE,
                          "%s: holds no adapter, so there is no base of it to name",
                          folder)
                : from_plain_folder(folder, out, err);
}

bool tr__is_token_tensor(const tr_model *model, const char *name) {
    const char *const *one = model->token_tensors;
    while (one && *one && strcmp(*one, name) != 0) {
        one++;
    }
    return one && *one;
}
