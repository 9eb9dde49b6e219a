#include "models/sentence.h"

#include "base/files.h"
#include "base/memory.h"
#include "models/fields.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

enum { FILE_MAX = 1 << 20, LARGEST = 1 << 30 };

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

// FOLDER/NAME as JSON, which the caller releases; NULL: it is not there.
static tr_status read_json(const char *folder, const char *name, char path[PATH_MAX],
                           json_t **out, tr_error *err) {
    char *text = NULL;
    size_t bytes = 0;
    json_error_t problem;
    *out = NULL;
    tr_status status = tr__path_join(path, PATH_MAX, folder, name, err);
    if (status != TR_OK || access(path, F_OK) != 0) {
        return status;
    }
    status = tr__file_read(path, FILE_MAX, &text, &bytes, err);
    if (status != TR_OK) {
        return status;
    }
    *out = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &problem);
    tr__free(text);
    return *out ? TR_OK
                : tr_fail(err, TR_USAGE, "%s:%d:%d: not valid JSON: %.160s", path,
                          problem.line, problem.column, problem.text);
}

// ---- 1_Pooling/config.json

typedef struct named_pooling {
    const char *mode, *flag; // "pooling_mode": mode, or flag: true
    tr_text_pooling pooling;
} named_pooling;

static const named_pooling poolings[] = {
    {"mean", "pooling_mode_mean_tokens", TR_TEXT_MEAN},
    {"cls", "pooling_mode_cls_token", TR_TEXT_CLS},
    {"lasttoken", "pooling_mode_lasttoken", TR_TEXT_LAST}};

static const char *const other_flags[] = {"pooling_mode_max_tokens",
                                          "pooling_mode_mean_sqrt_len_tokens",
                                          "pooling_mode_weightedmean_tokens"};

static tr_status refuse_pooling(const char *path, const char *what, tr_error *err) {
    return tr_fail(err, TR_USAGE,
                   "%s: pools by %.60s; supported are the mean, the first token (cls) "
                   "and the last one, one of them",
                   path, what);
}

static tr_status read_flags(const json_t *json, const char *path, tr_text_pooling *out,
                            tr_error *err) {
    int found = 0;
    for (size_t i = 0; i < COUNT_OF(other_flags); i++) {
        if (json_is_true(json_object_get(json, other_flags[i]))) {
            return refuse_pooling(path, other_flags[i], err);
        }
    }
    for (size_t i = 0; i < COUNT_OF(poolings); i++) {
        if (json_is_true(json_object_get(json, poolings[i].flag))) {
            *out = poolings[i].pooling;
            found++;
        }
    }
    return found == 1 ? TR_OK
                      : refuse_pooling(path, found ? "several ways" : "no way", err);
}

static tr_status read_mode(const json_t *mode, const char *path, tr_text_pooling *out,
                           tr_error *err) {
    const char *name = json_string_value(mode);
    for (size_t i = 0; name && i < COUNT_OF(poolings); i++) {
        if (strcmp(name, poolings[i].mode) == 0) {
            *out = poolings[i].pooling;
            return TR_OK;
        }
    }
    return refuse_pooling(path, name ? name : "a list of ways", err);
}

static tr_status read_pooling(const char *folder, const char *part, tr_sentence *out,
                              tr_error *err) {
    char path[PATH_MAX], name[PATH_MAX];
    json_t *json = NULL;
    tr_status status = tr__path_join(name, sizeof name, part, "config.json", err);
    if (status == TR_OK) {
        status = read_json(folder, name, path, &json, err);
    }
    if (status == TR_OK && !json) {
        status = tr_fail(err, TR_IO, "%s: not found, but modules.json names it", path);
    }
    if (status == TR_OK) {
        const json_t *mode = json_object_get(json, "pooling_mode");
        status = mode ? read_mode(mode, path, &out->way.pooling, err)
                      : read_flags(json, path, &out->way.pooling, err);
    }
    json_decref(json);
    return status;
}

// ---- modules.json

// "sentence_transformers.models.Pooling": the last part of it.
static const char *class_of(const json_t *module) {
    const char *type = json_string_value(json_object_get(module, "type"));
    const char *dot = type ? strrchr(type, '.') : NULL;
    return dot ? dot + 1 : type ? type : "?";
}

static tr_status read_module(const char *folder, const char *path, const json_t *module,
                             tr_sentence *out, tr_error *err) {
    const char *class = class_of(module);
    const char *part = json_string_value(json_object_get(module, "path"));
    if (strcmp(class, "Transformer") == 0 && part && !part[0]) {
        return TR_OK;
    }
    if (strcmp(class, "Pooling") == 0 && part) {
        return read_pooling(folder, part, out, err);
    }
    if (strcmp(class, "Normalize") == 0) {
        out->way.normalize = true;
        return TR_OK;
    }
    return tr_fail(err, TR_USAGE,
                   "%s: has the module %.60s (\"%.60s\"); supported are Transformer in "
                   "the folder itself, Pooling and Normalize",
                   path, class, part ? part : "");
}

static tr_status read_length(const char *folder, tr_sentence *out, tr_error *err) {
    char path[PATH_MAX];
    json_t *json = NULL;
    tr_status status = read_json(folder, "sentence_bert_config.json", path, &json, err);
    tr_model_keys keys = {json, path};
    const tr_model_field field = {"max_seq_length", 1, LARGEST, &out->length, NULL};
    if (status == TR_OK && json) {
        status = tr__fields_read(&keys, &field, 1, err);
    }
    if (status == TR_OK && json) {
        status = tr__field_only(&keys, "do_lower_case", false, err);
    }
    json_decref(json);
    return status;
}

tr_status tr__sentence_read(const char *folder, tr_sentence *out, tr_error *err) {
    char path[PATH_MAX];
    json_t *modules = NULL;
    *out = (tr_sentence){.way = {TR_TEXT_MEAN, true}};
    tr_status status = read_json(folder, "modules.json", path, &modules, err);
    if (status != TR_OK || !modules) {
        return status;
    }
    out->there = true;
    out->way.normalize = false;
    if (!json_is_array(modules)) {
        status = tr_fail(err, TR_USAGE, "%s: is not a list of modules", path);
    }
    for (size_t i = 0; i < json_array_size(modules) && status == TR_OK; i++) {
        status = read_module(folder, path, json_array_get(modules, i), out, err);
    }
    json_decref(modules);
    return status == TR_OK ? read_length(folder, out, err) : status;
}
