// Is a key known? Asked before there is a file.
#include "config/internal.h"

#include <string.h>

// Is it the key, a group that the key is in, or a place inside of its object?
static bool leads_to(const tr_key *key, const char *path) {
    size_t length = strlen(path), own = strlen(key->path);
    size_t common = length < own ? length : own;
    if (strchr(key->path, '*') || strncmp(key->path, path, common) != 0) {
        return false;
    }
    return length == own || (length < own && key->path[length] == '.') ||
           (length > own && path[own] == '.' && key->types & TR_KEY_OBJECT);
}

bool tr__config_has_path(const tr_config *config, const char *path) {
    const tr_key *key;
    for (size_t i = 0; (key = tr__config_key(config, i)) != NULL; i++) {
        if (leads_to(key, path)) {
            return true;
        }
    }
    return false;
}

tr_status tr__config_knows(const tr_key_table *const *tables, size_t table_count,
                           const char *path, const char *source, tr_error *err) {
    const tr_config_override override = {.key = path, .value = "", .source = source};
    const tr_config none = {.tables = tables,
                            .table_count = table_count,
                            .overrides = &override,
                            .override_count = 1};
    size_t length = strlen(path);
    if (length == 0 || length >= TR_CONFIG_PATH_MAX) {
        return tr_fail(err, TR_USAGE, "%s: a key of %zu characters",
                       tr__config_path_source(&none, path), length);
    }
    return tr__config_has_path(&none, path) ? TR_OK
                                            : tr__config_unknown(&none, path, err);
}
