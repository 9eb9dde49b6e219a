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
    if (entry->is_auto) { // decided by nobody; but a switch is not on
        return entry->key->status == TR_KEY_NO_MEANING && !entry->key->fallback;
    }
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

// ---- what is ignored

// Has every key below `group`, of so many characters, no meaning?
static bool is_idle_group(const tr_config *config, const char *group, size_t length) {
    const tr_key *key;
    for (size_t i = 0; (key = tr__config_key(config, i)) != NULL; i++) {
        if (strncmp(key->path, group, length) == 0 && key->path[length] == '.' &&
            key->status != TR_KEY_NO_MEANING) {
            return false;
        }
    }
    return true;
}

// "flops_profiler.*" for a key of a group that has no meaning at all, else the key.
static void show_ignored(const tr_config *config, const char *path, char *dst,
                         size_t size) {
    const char *dot = strchr(path, '.');
    while (dot && !is_idle_group(config, path, (size_t)(dot - path))) {
        dot = strchr(dot + 1, '.');
    }
    if (dot) {
        snprintf(dst, size, "%.*s.*", (int)(dot - path), path);
    } else {
        snprintf(dst, size, "%s", path);
    }
}

// Is `name` one of the names in `list`, "a, b, c"?
static bool is_listed(const char *list, const char *name) {
    size_t length = strlen(name);
    for (const char *at = list; at; at = strstr(at, ", ")) {
        at += at == list ? 0 : 2;
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || !at[length])) {
            return true;
        }
    }
    return false;
}

static tr_status note_ignored(tr_config *config, const char *path, tr_error *err) {
    char name[TR_CONFIG_PATH_MAX];
    const char *before = config->no_meaning;
    show_ignored(config, path, name, sizeof name);
    if (is_listed(before, name)) {
        return TR_OK;
    }
    char *list = tr__format("%s%s%s", before ? before : "", before ? ", " : "", name);
    if (!list) {
        return tr_fail(err, TR_MEMORY, "no memory for the names of keys");
    }
    tr__free(config->no_meaning);
    config->no_meaning = list;
    return TR_OK;
}

static bool is_switch(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot && strcmp(dot, ".enabled") == 0;
}

// Is the key in the group of a switch that has a line of its own?
static bool is_told_with_switch(const tr_config *config, const char *path) {
    char name[TR_CONFIG_PATH_MAX + sizeof ".enabled"];
    const char *dot = strrchr(path, '.');
    snprintf(name, sizeof name, "%.*s.enabled", dot ? (int)(dot - path) : 0, path);
    const tr_entry *entry = tr__config_entry(config, name);
    return entry && entry->given && entry->key->status == TR_KEY_NO_MEANING &&
           is_active(entry);
}

static tr_status ignore(tr_config *config, tr_entry *entry, tr_error *err) {
    const char *path = entry->key->path;
    entry->unmet = is_switch(path);
    return is_told_with_switch(config, path) ? TR_OK : note_ignored(config, path, err);
}

const tr_key *tr__config_unmet(const tr_config *config, size_t index) {
    for (size_t i = 0; i < config->count; i++) {
        if (config->entries[i].unmet && index-- == 0) {
            return config->entries[i].key;
        }
    }
    return NULL;
}

tr_status tr__config_ready(tr_config *config, tr_error *err) {
    tr_status status = TR_OK;
    for (size_t i = 0; i < config->count && status == TR_OK; i++) {
        tr_entry *entry = &config->entries[i];
        if (!entry->given || !is_active(entry) ||
            tr__config_disabled(config, entry->key->path)) {
            continue;
        }
        if (entry->key->status == TR_KEY_NOT_YET) {
            tr_error found = {0};
            fail_not_yet(config, entry, &found);
            status = tr__config_problem(config, &found, err);
        } else if (entry->key->status == TR_KEY_NO_MEANING) {
            status = ignore(config, entry, err);
        }
    }
    return status;
}
