#include "files/safetensors/adapter.h"

#include "base/files.h"
#include "base/hub.h"
#include "base/memory.h"
#include "files/safetensors/json.h"

#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CONFIG_MAX = 1 << 20 };

bool tr__is_adapter_folder(const char *folder) {
    char path[PATH_MAX];
    return tr__path_join(path, sizeof path, folder, TR_ADAPTER_CONFIG, NULL) == TR_OK &&
           access(path, F_OK) == 0;
}

static bool is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

// name: as the file has it.
static tr_status find(const char *path, const char *name, char *base, tr_error *err) {
    if (is_folder(name)) {
        int used = snprintf(base, PATH_MAX, "%s", name);
        return used < PATH_MAX ? TR_OK
                               : tr_fail(err, TR_IO, "%s: a path is too long", path);
    }
    tr_status status = tr__hub_find(name, base, err);
    if (status == TR_OK && base[0] == '\0') {
        status = tr_fail(err, TR_IO,
                         "%s: the adapter's base, \"%.200s\", is no folder, and the "
                         "local cache of Hugging Face does not have it",
                         path, name);
    }
    return status;
}

tr_status tr__adapter_keys(const char *folder, char *path, json_t **out,
                           tr_error *err) {
    char *text = NULL;
    size_t bytes = 0;
    tr_status status = tr__path_join(path, PATH_MAX, folder, TR_ADAPTER_CONFIG, err);
    if (status == TR_OK) {
        status = tr__file_read(path, CONFIG_MAX, &text, &bytes, err);
    }
    if (status == TR_OK) {
        status = tr__json_parse(path, text, bytes, out, err);
    }
    tr__free(text);
    return status;
}

tr_status tr__adapter_base(const char *folder, char *base, tr_error *err) {
    char path[PATH_MAX];
    json_t *keys = NULL;
    tr_status status = tr__adapter_keys(folder, path, &keys, err);
    const char *name =
        json_string_value(json_object_get(keys, "base_model_name_or_path"));
    if (status == TR_OK && !name) {
        status = tr_fail(err, TR_IO, "%s: has no \"base_model_name_or_path\"", path);
    }
    status = status == TR_OK ? find(path, name, base, err) : status;
    json_decref(keys);
    return status;
}
