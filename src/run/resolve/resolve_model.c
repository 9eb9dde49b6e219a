// "model": a published name, a config.json, a folder, a name on Hugging Face's hub, or
// an object.
#include "base/checked.h"
#include "base/files.h"
#include "base/hub.h"
#include "base/memory.h"
#include "base/text.h"
#include "files/checkpoint/hub_model.h"
#include "files/safetensors/adapter.h"
#include "files/safetensors/tensor_set.h"
#include "models/folder.h"
#include "models/models.h"
#include "run/run.h"

#include <tranche/checkpoint.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { BYTES = 256, LENGTH = 2048 };

// An object that names no vocabulary gets that of its data: bytes have one of 256, and
// a text's tokenizer tells later. NULL: no memory.
static json_t *with_vocabulary(tr_run *run, const json_t *given) {
    json_t *keys = json_deep_copy(given);
    const char *type = json_string_value(json_object_get(keys, "model_type"));
    bool bytes = strcmp(tr__config_text(run->config, "data.format"), "bytes") == 0;
    const json_t *size = json_object_get(keys, "vocab_size");
    run->vocabulary_open = !size || json_is_null(size);
    if (keys && bytes && tr__model_type_reads_tokens(type) && run->vocabulary_open &&
        json_object_set_new(keys, "vocab_size", json_integer(BYTES)) != 0) {
        json_decref(keys);
        return NULL;
    }
    return keys;
}

static tr_status from_object(tr_run *run, const json_t *given, tr_error *err) {
    char origin[512];
    json_t *keys = with_vocabulary(run, given);
    tr__config_name(run->config, "model", origin, sizeof origin);
    if (!keys) {
        return tr_fail(err, TR_MEMORY, "no memory for the model's keys");
    }
    tr_status status = tr__model_from_json(keys, origin, true, &run->own_model, err);
    json_decref(keys);
    return status;
}

static tr_status keep_folder(tr_run *run, const char *folder, tr_error *err) {
    run->model_folder = tr__strdup(folder);
    return run->model_folder ? TR_OK : tr_fail(err, TR_MEMORY, "no memory for a path");
}

static tr_status from_folder(tr_run *run, const char *path, tr_error *err) {
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", path);
    // A run's out folder stands for its latest checkpoint.
    char config[PATH_MAX];
    struct stat info;
    tr_status status = tr__path_join(config, sizeof config, path, "config.json", err);
    if (status == TR_OK && stat(config, &info) != 0 && !tr__is_adapter_folder(path)) {
        status = tr_checkpoint_locate(path, folder, sizeof folder, err);
    }
    if (status == TR_OK) {
        status = tr__model_from_folder(folder, tr__config_text(run->config, "base"),
                                       &run->own_model, err);
    }
    if (status == TR_OK) {
        status = keep_folder(run, folder, err);
    }
    if (status == TR_OK && tr__tensor_folder(folder)) {
        run->weights = tr__strdup(folder);
        status = run->weights ? TR_OK : tr_fail(err, TR_MEMORY, "no memory for a path");
    } else if (status == TR_OK) {
        tr__warn(&run->log,
                 "%s has no model.safetensors: the model starts from new random "
                 "weights",
                 path);
    }
    return status;
}

// A config.json, and what lies beside it.
static tr_status from_file(tr_run *run, const char *path, tr_error *err) {
    char folder[PATH_MAX];
    int length = snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    tr_status status = tr__model_from_file(path, &run->own_model, err);
    if (status != TR_OK || length < 0 || (size_t)length >= sizeof folder) {
        return status;
    }
    if (slash) {
        slash[slash == folder] = '\0';
    }
    return keep_folder(run, slash ? folder : ".", err);
}

// A name on Hugging Face's hub: what its local cache has of it.
static tr_status from_hub(tr_run *run, const char *folder, tr_error *err) {
    tr_status status = from_folder(run, folder, err);
    json_t *path = json_string(folder);
    if (status == TR_OK) { // another snapshot may be the newest one day
        status = path ? tr__config_resolve_json(run->config, "model", path,
                                                TR_ORIGIN_DERIVED,
                                                "in Hugging Face's local cache", err)
                      : tr_fail(err, TR_MEMORY, "no memory for a path");
    }
    json_decref(path);
    return status;
}

// Neither a file nor a folder nor a name that is known.
static tr_status fail_unknown(const char *text, tr_error *err) {
    const char *names[TR_MODEL_PRESETS_MAX];
    size_t count = tr__model_preset_names(names);
    const char *nearest = tr__nearest(text, names, count);
    if (tr__hub_is_name(text)) {
        return tr_fail(
            err, TR_USAGE,
            "model \"%.200s\" is not a file or a folder, and the local cache "
            "of Hugging Face does not have it; if it is a model there, "
            "download it with: hf download %.200s",
            text, text);
    }
    return tr_fail(
        err, TR_USAGE,
        "model \"%.200s\" is not a file, a folder or a known name; the nearest name is "
        "\"%s\"",
        text, nearest ? nearest : names[0]);
}

static tr_status from_text(tr_run *run, const char *text, tr_error *err) {
    char folder[PATH_MAX];
    struct stat info;
    json_t *preset = tr__model_preset(text);
    if (preset) { // a name stands for its published shape, vocabulary included
        tr_status status =
            tr__model_from_json(preset, "model", true, &run->own_model, err);
        json_decref(preset);
        return status;
    }
    if (stat(text, &info) == 0) {
        return S_ISDIR(info.st_mode) ? from_folder(run, text, err)
                                     : from_file(run, text, err);
    }
    tr_status status = tr__hub_find_model(text, folder, err);
    if (status != TR_OK) {
        return status;
    }
    return folder[0] ? from_hub(run, folder, err) : fail_unknown(text, err);
}

// The vocabulary in slices, as "execution.vocabulary_slices" says.
static tr_status slice_model(tr_run *run, tr_error *err) {
    int64_t slices = tr__config_is_auto(run->config, "execution.vocabulary_slices")
                         ? 1
                         : tr__config_int(run->config, "execution.vocabulary_slices");
    if (run->own_model) {
        return tr__model_slice(run->own_model, (int)slices, err);
    }
    return slices <= 1
               ? TR_OK
               : tr_fail(err, TR_USAGE,
                         "execution.vocabulary_slices is %lld, but the model is "
                         "the caller's own",
                         (long long)slices);
}

// Do documents share samples? The caller's own data have the tensors that they have.
// Texts that are given labels have rows of their own, so that answers are in the order
// of the data.
static bool is_packed(const tr_run *run) {
    if (run->vocabulary_fixed && run->own_model && run->own_model->labels > 0) {
        return false;
    }
    return run->given.parts.train
               ? tr_batch_positions(tr_dataset_tensors(run->given.parts.train)) != NULL
               : tr__config_bool(run->config, "data.packing");
}

// How many tokens a sample has, of a model that reads tokens. said: by its folder; 0:
// it does not say.
static tr_status set_length(tr_run *run, int64_t said, tr_error *err) {
    const char *key = "data.max_length";
    bool given = tr__config_is_set(run->config, key);
    if (!run->own_model || !tr__model_type_reads_tokens(run->own_model->type)) {
        return !given ? TR_OK
                      : tr_fail(err, TR_USAGE,
                                "data.max_length is for models that come with Tranche "
                                "and read tokens; this one's samples have a size of "
                                "their own");
    }
    int64_t most = tr__model_positions(run->own_model);
    int64_t length = given           ? tr__config_int(run->config, key)
                     : said > 0      ? tr__min_i64(said, most)
                     : most < LENGTH ? most
                                     : LENGTH;
    if (length > most) {
        return tr_fail(err, TR_USAGE,
                       "data.max_length is %lld, more than the model's %lld positions",
                       (long long)length, (long long)most);
    }
    if (!given && length < most) {
        tr__note(&run->log,
                 "samples of %lld tokens, of the model's %lld positions; "
                 "data.max_length changes it",
                 (long long)length, (long long)most);
    }
    tr__model_set_length(run->own_model, length, is_packed(run));
    return TR_OK;
}

tr_status tr__run_resolve_model(tr_run *run, tr_error *err) {
    if (run->given.parts.model) {
        run->model = run->given.parts.model;
        int64_t none = 0;
        tr_status own = tr__run_resolve_adapter(run, err);
        own = own == TR_OK ? tr__run_resolve_vocabulary(run, err) : own;
        own = own == TR_OK ? slice_model(run, err) : own;
        return own == TR_OK ? tr__run_resolve_task(run, &none, err) : own;
    }
    int64_t said = 0;
    tr_status status =
        tr__config_type(run->config, "model") == TR_KEY_TEXT
            ? from_text(run, tr__config_text(run->config, "model"), err)
            : from_object(run, tr__config_json(run->config, "model"), err);
    if (status == TR_OK) {
        run->model = run->own_model;
        status = tr__run_resolve_vocabulary(run, err);
    }
    if (status == TR_OK) {
        status = tr__run_resolve_adapter(run, err);
    }
    if (status == TR_OK) {
        status = slice_model(run, err);
    }
    if (status == TR_OK) {
        status = tr__run_resolve_task(run, &said, err);
    }
    if (status == TR_OK) {
        status = set_length(run, said, err);
    }
    if (status != TR_OK) {
        return status;
    }
    if (run->weights) { // the folder is what a second run needs
        return TR_OK;
    }
    json_t *keys = json_loads(run->model->config_json, 0, NULL);
    status = keys ? tr__config_resolve_json(run->config, "model", keys,
                                            TR_ORIGIN_DERIVED, "with its defaults", err)
                  : tr_fail(err, TR_MEMORY, "no memory for the model's keys");
    json_decref(keys);
    return status;
}
