// What "auto" and derived keys came to, and run.json.
#include "config/internal.h"

#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Takes `value` (NULL: no memory). Replaces what the user wrote only if `over` is set.
static tr_status resolve(tr_config *config, const char *path, json_t *value, bool over,
                         tr_origin origin, const char *why, tr_error *err) {
    tr_entry *entry = tr__config_entry(config, path);
    char *words = why ? tr__strdup(why) : NULL;
    if (!entry) {
        json_decref(value);
        tr__free(words);
        return tr_fail(err, TR_INTERNAL, "the key %s is in no table or not in force",
                       path);
    }
    if (!value || (why && !words)) {
        json_decref(value);
        tr__free(words);
        return tr_fail(err, TR_MEMORY, "no memory for %s", path);
    }
    bool resolved =
        entry->origin == TR_ORIGIN_AUTO || entry->origin == TR_ORIGIN_DERIVED;
    bool written = entry->given && !entry->is_auto && !resolved;
    if (written && !over) {
        json_decref(value);
        tr__free(words);
        return TR_OK;
    }
    json_decref(entry->value);
    entry->value = value;
    tr__free(entry->why);
    entry->why = words;
    entry->is_auto = false;
    entry->origin = written ? entry->origin : origin;
    return TR_OK;
}

tr_status tr__config_resolve_bool(tr_config *config, const char *path, bool value,
                                  tr_origin origin, const char *why, tr_error *err) {
    return resolve(config, path, json_boolean(value), false, origin, why, err);
}

tr_status tr__config_resolve_int(tr_config *config, const char *path, int64_t value,
                                 tr_origin origin, const char *why, tr_error *err) {
    return resolve(config, path, json_integer(value), false, origin, why, err);
}

tr_status tr__config_resolve_number(tr_config *config, const char *path, double value,
                                    tr_origin origin, const char *why, tr_error *err) {
    return resolve(config, path, json_real(value), false, origin, why, err);
}

tr_status tr__config_resolve_text(tr_config *config, const char *path,
                                  const char *value, tr_origin origin, const char *why,
                                  tr_error *err) {
    return resolve(config, path, json_string(value), false, origin, why, err);
}

tr_status tr__config_resolve_json(tr_config *config, const char *path,
                                  const json_t *value, tr_origin origin,
                                  const char *why, tr_error *err) {
    return resolve(config, path, json_deep_copy(value), true, origin, why, err);
}

tr_status tr__config_explain_auto(tr_config *config, const char *path, const char *why,
                                  tr_error *err) {
    tr_entry *entry = tr__config_entry(config, path);
    if (!entry || !entry->is_auto) {
        return TR_OK;
    }
    char *words = tr__strdup(why);
    if (!words) {
        return tr_fail(err, TR_MEMORY, "no memory for %s", path);
    }
    tr__free(entry->why);
    entry->why = words;
    return TR_OK;
}

tr_status tr__config_settle(tr_config *config, tr_error *err) {
    for (size_t i = 0; i < config->count; i++) {
        tr_entry *entry = &config->entries[i];
        if (!entry->is_auto || !entry->fallback ||
            !tr__config_in_force(config, entry->key)) {
            continue;
        }
        tr_status status =
            resolve(config, entry->key->path, json_incref(entry->fallback), false,
                    TR_ORIGIN_AUTO, "its default", err);
        if (status != TR_OK) {
            return status;
        }
    }
    return tr__config_mistake(config, err);
}

// Freed by the caller; NULL: no memory.
static char *origin_words(const tr_entry *entry) {
    static const char *const words[] = {[TR_ORIGIN_DEFAULT] = "default",
                                        [TR_ORIGIN_FILE] = "file",
                                        [TR_ORIGIN_SET] = "set",
                                        [TR_ORIGIN_AUTO] = "auto",
                                        [TR_ORIGIN_DERIVED] = "derived"};
    const char *said = entry->origin == TR_ORIGIN_SET && entry->source
                           ? entry->source
                           : words[entry->origin];
    return tr__format("%s%s%s", said, entry->why ? ": " : "",
                      entry->why ? entry->why : "");
}

tr_status tr__config_tell(const tr_config *config, const char *path, char **value,
                          char **origin, tr_error *err) {
    const tr_entry *entry = tr__config_entry(config, path);
    if (!entry && !tr__config_has_path(config, path)) {
        return tr__config_unknown(config, path, err);
    }
    *value = NULL;
    *origin = entry ? origin_words(entry) : tr__strdup("default");
    json_t *json = !entry           ? NULL
                   : entry->is_auto ? json_string("auto")
                                    : json_incref(tr__entry_value(entry));
    bool has = entry && (entry->is_auto || tr__entry_value(entry));
    *value = json ? tr__config_print(json, 0) : NULL;
    json_decref(json);
    if (*origin && (*value || !has)) {
        return TR_OK;
    }
    tr__free(*value);
    tr__free(*origin);
    *value = *origin = NULL;
    return tr_fail(err, TR_MEMORY, "no memory for the value of %s", path);
}

static json_t *origin_json(const tr_entry *entry) {
    char *text = origin_words(entry);
    json_t *json = text ? json_string(text) : NULL;
    tr__free(text);
    return json;
}

// Puts `value` (a new reference, or NULL: no memory) at `path` in the tree.
static bool plant(json_t *tree, const char *path, json_t *value) {
    char name[TR_CONFIG_PATH_MAX];
    const char *dot;
    for (; value && (dot = strchr(path, '.')) != NULL; path = dot + 1) {
        snprintf(name, sizeof name, "%.*s", (int)(dot - path), path);
        json_t *inner = json_object_get(tree, name);
        if (!inner) {
            inner = json_object();
            if (!inner || json_object_set_new(tree, name, inner) != 0) {
                json_decref(value);
                return false;
            }
        }
        tree = inner;
    }
    return value && json_object_set_new(tree, path, value) == 0;
}

// What is worth a line: values in force that do something, and all the user gave.
static bool is_shown(const tr_config *config, const tr_entry *entry) {
    const tr_key *key = entry->key;
    if (!tr__config_in_force(config, key) || key->status == TR_KEY_REFUSED ||
        key->status == TR_KEY_OF_CALL || (!tr__entry_value(entry) && !entry->is_auto)) {
        return false;
    }
    return entry->given ||
           (key->status == TR_KEY_WORKS && !tr__config_disabled(config, key->path));
}

static bool write_entry(const tr_entry *entry, json_t *root, json_t *derived,
                        json_t *origins) {
    const char *path = entry->key->path;
    json_t *value =
        entry->is_auto ? json_string("auto") : json_incref(tr__entry_value(entry));
    bool written = entry->origin == TR_ORIGIN_DERIVED
                       ? value && json_object_set_new(derived, path, value) == 0
                       : plant(root, path, value);
    json_t *origin = written ? origin_json(entry) : NULL;
    return origin && json_object_set_new(origins, path, origin) == 0;
}

tr_status tr__config_write_resolved(const tr_config *config, char **text,
                                    tr_error *err) {
    if (tr__config_mistake(config, err) != TR_OK) {
        return TR_INTERNAL;
    }
    json_t *root = json_object(), *derived = json_object(), *origins = json_object();
    bool good = root && derived && origins;
    for (size_t i = 0; i < config->count && good; i++) {
        if (is_shown(config, &config->entries[i])) {
            good = write_entry(&config->entries[i], root, derived, origins);
        }
    }
    good = good && json_object_set(root, "derived", derived) == 0 &&
           json_object_set(root, "origins", origins) == 0;
    char *printed = good ? tr__config_print(root, 2) : NULL;
    json_decref(origins);
    json_decref(derived);
    json_decref(root);
    if (!printed) {
        return tr_fail(err, TR_MEMORY, "no memory to write the resolved run");
    }
    *text = printed;
    return TR_OK;
}
