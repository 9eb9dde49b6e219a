// Values that stand in place of a group of keys.
#include "config/internal.h"

#include <stdio.h>
#include <string.h>

// The object that the key is in, as far as the tree has it; NULL: it has none, or none
// that is an object. *name: of the group in it.
static json_t *parent_of(json_t *root, const tr_key *key, char *path, size_t size,
                         const char **name) {
    json_t *tree = root;
    char *begin = path, *dot;
    snprintf(path, size, "%s", key->path);
    *strrchr(path, '.') = '\0'; // the key's own name
    while ((dot = strchr(begin, '.')) != NULL) {
        *dot = '\0';
        tree = json_object_get(tree, begin);
        begin = dot + 1;
    }
    *name = begin;
    return json_is_object(tree) ? tree : NULL;
}

static tr_status name_value(json_t *root, const tr_key *key, tr_error *err) {
    char path[TR_CONFIG_PATH_MAX];
    const char *name;
    json_t *parent = parent_of(root, key, path, sizeof path, &name);
    json_t *value = json_object_get(parent, name);
    if (!value || json_is_object(value) || json_is_null(value)) {
        return TR_OK;
    }
    json_t *group = json_object();
    bool done = group &&
                json_object_set(group, strrchr(key->path, '.') + 1, value) == 0 &&
                json_object_set(parent, name, group) == 0;
    json_decref(group);
    return done ? TR_OK : tr_fail(err, TR_MEMORY, "no memory for %s", key->path);
}

tr_status tr__config_name_values(tr_config *config, tr_error *err) {
    tr_status status = TR_OK;
    const tr_key *key;
    for (size_t i = 0; status == TR_OK && (key = tr__config_key(config, i)); i++) {
        status = key->of_group ? name_value(config->root, key, err) : TR_OK;
    }
    return status;
}
