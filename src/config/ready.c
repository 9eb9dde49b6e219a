// What is accepted but not acted upon: errors for what is not built yet, one list of
// what has no meaning here.
#include "config/internal.h"

#include "base/memory.h"

#include <stdio.h>
#include <string.h>

// Does a value ask for something? Objects that are looked at only from outside ask
// unless every "enabled" in them is false.
static bool asks(const json_t *value, bool *saw_enabled) {
    const char *name;
    json_t *inner;
    bool asking = false;
    if (!json_is_object(value)) {
        return false;
    }
    json_object_foreach((json_t *)value, name, inner) {
        if (strcmp(name, "enabled") == 0) {
            *saw_enabled = true;
            asking = asking || !json_is_false(inner);
        }
        asking = asking || asks(inner, saw_enabled);
    }
    return asking;
}

static bool is_active(const tr_entry *entry) {
    if (!entry->value) {
        return false;
    }
    if (json_is_object(entry->value)) {
        bool saw_enabled = false;
        bool asking = asks(entry->value, &saw_enabled);
        return saw_enabled ? asking : json_object_size(entry->value) > 0;
    }
    return !entry->fallback || !json_equal(entry->value, entry->fallback);
}

static tr_status fail_not_yet(const tr_config *config, const tr_entry *entry,
                              tr_error *err) {
    char where[TR_CONFIG_PATH_MAX * 2], given[TR_CONFIG_PATH_MAX];
    tr__config_where(config, entry->key->path, where, sizeof where);
    tr__config_show_value(entry->value, given, sizeof given);
    const char *fallback = entry->key->fallback;
    return tr_fail(err, TR_USAGE, "%s%s: not yet supported (it is %s); %s%s", where,
                   entry->key->path, given,
                   fallback ? "what works is " : "leave it out",
                   fallback ? fallback : "");
}

static tr_status note_no_meaning(tr_config *config, const char *path, tr_error *err) {
    const char *before = config->no_meaning;
    char *list = tr__format("%s%s%s", before ? before : "", before ? ", " : "", path);
    if (!list) {
        return tr_fail(err, TR_MEMORY, "no memory for the names of keys");
    }
    tr__free(config->no_meaning);
    config->no_meaning = list;
    return TR_OK;
}

tr_status tr__config_ready(tr_config *config, tr_error *err) {
    tr_status status = TR_OK;
    for (size_t i = 0; i < config->count && status == TR_OK; i++) {
        const tr_entry *entry = &config->entries[i];
        if (!entry->given || tr__config_disabled(config, entry->key->path)) {
            continue;
        }
        if (entry->key->status == TR_KEY_NOT_YET && is_active(entry)) {
            status = fail_not_yet(config, entry, err);
        } else if (entry->key->status == TR_KEY_NO_MEANING && is_active(entry)) {
            status = note_no_meaning(config, entry->key->path, err);
        }
    }
    return status;
}
