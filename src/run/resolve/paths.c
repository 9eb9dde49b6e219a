// Paths of a run file: where they are not found in the current folder, they are looked
// for beside the run file.
#include "data/sources/paths.h"
#include "base/memory.h"
#include "models/models.h"
#include "run/run.h"

#include <jansson.h>

#include <string.h>

static bool is_model_name(const char *text) {
    json_t *preset = tr__model_preset(text);
    json_decref(preset);
    return preset != NULL;
}

// `text` below the run file's folder where it is found there alone; NULL: it stays.
static char *beside(const tr_run *run, const char *file, const char *key,
                    const char *text) {
    const char *slash = strrchr(file, '/');
    bool model = strcmp(key, "model") == 0 && is_model_name(text);
    if (!slash || text[0] == '/' || text[0] == '\0' || model ||
        tr__path_is_found(text)) {
        return NULL;
    }
    char *path = tr__format("%.*s/%s", (int)(slash - file), file, text);
    if (!path || !tr__path_is_found(path)) {
        tr__free(path);
        return NULL;
    }
    tr__note(&run->log,
             "%s: %s is not in the current folder; taken is %s, beside the "
             "run file",
             key, text, path);
    return path;
}

// The same of a text; anything else as it is. A new reference, NULL: no memory.
static json_t *found(const tr_run *run, const char *file, const char *key,
                     json_t *value) {
    char *path =
        json_is_string(value) ? beside(run, file, key, json_string_value(value)) : NULL;
    json_t *taken = path ? json_string(path) : json_incref(value);
    tr__free(path);
    return taken;
}

static json_t *found_all(const tr_run *run, const char *file, const char *key,
                         json_t *value) {
    size_t i;
    json_t *one;
    if (!json_is_array(value)) {
        return found(run, file, key, value);
    }
    json_t *all = json_array();
    json_array_foreach(value, i, one) {
        if (json_array_append_new(all, found(run, file, key, one)) != 0) {
            json_decref(all);
            return NULL;
        }
    }
    return all;
}

tr_status tr__run_find_files(tr_run *run, const char *file, tr_error *err) {
    static const char *const keys[] = {
        "model",       "adapter.path",           "data.train",    "data.validation",
        "data.labels", "data.validation_labels", "data.tokenizer"};
    tr_status status = TR_OK;
    for (size_t i = 0; i < sizeof keys / sizeof *keys && status == TR_OK; i++) {
        json_t *value = tr__config_json(run->config, keys[i]);
        if (!file || !value || !tr__config_is_given(run->config, keys[i]) ||
            tr__config_origin(run->config, keys[i]) != TR_ORIGIN_FILE) {
            continue;
        }
        json_t *taken = found_all(run, file, keys[i], value);
        if (!taken) {
            return tr_fail(err, TR_MEMORY, "no memory for %s", keys[i]);
        }
        if (!json_equal(taken, value)) {
            status = tr__config_resolve_json(run->config, keys[i], taken,
                                             TR_ORIGIN_FILE, NULL, err);
        }
        json_decref(taken);
    }
    return status;
}
