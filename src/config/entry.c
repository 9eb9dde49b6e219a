// Keys and what became of them: lookup and getters.
#include "config/internal.h"

#include <stdio.h>
#include <string.h>

// Where the index lies behind the table it becomes less by as many keys as are in it.
static const tr_key *key_of(const tr_key_table *table, size_t *index) {
    const tr_key *key = NULL;
    if (*index < table->count) {
        return &table->keys[*index];
    }
    *index -= table->count;
    for (size_t i = 0; !key && table->parts && table->parts[i]; i++) {
        key = key_of(table->parts[i], index);
    }
    return key;
}

const tr_key *tr__key_at(const tr_key_table *const *tables, size_t table_count,
                         size_t index) {
    const tr_key *key = NULL;
    for (size_t i = 0; !key && i < table_count; i++) {
        key = key_of(tables[i], &index);
    }
    return key;
}

const tr_key *tr__config_key(const tr_config *config, size_t index) {
    return tr__key_at(config->tables, config->table_count, index);
}

json_t *tr__entry_value(const tr_entry *entry) {
    return entry->value ? entry->value : entry->fallback;
}

bool tr__config_in_force(const tr_config *config, const tr_key *key) {
    if (!key->where) {
        return true;
    }
    const tr_entry *governor = tr__config_entry(config, key->where_key);
    const char *value = governor ? json_string_value(tr__entry_value(governor)) : NULL;
    for (const char *const *name = key->where; value && *name; name++) {
        if (strcmp(*name, value) == 0) {
            return true;
        }
    }
    return false;
}

tr_entry *tr__config_entry(const tr_config *config, const char *path) {
    for (size_t i = 0; i < config->count; i++) {
        tr_entry *entry = &config->entries[i];
        if (strcmp(entry->key->path, path) == 0 &&
            tr__config_in_force(config, entry->key)) {
            return entry;
        }
    }
    return NULL;
}

bool tr__config_disabled(const tr_config *config, const char *path) {
    char enabled[TR_CONFIG_PATH_MAX + sizeof ".enabled"];
    for (const char *dot = strchr(path, '.'); dot; dot = strchr(dot + 1, '.')) {
        snprintf(enabled, sizeof enabled, "%.*s.enabled", (int)(dot - path), path);
        const tr_entry *entry = tr__config_entry(config, enabled);
        if (entry && strcmp(path, enabled) != 0 &&
            !json_is_true(tr__entry_value(entry))) {
            return true;
        }
    }
    return false;
}

const char *tr__config_no_meaning(const tr_config *config) {
    return config->no_meaning;
}

// A mistake of the program. The getter has no status to return: it finds no value, and
// who asks next how the config has fared gets this (the first stays).
static void misuse(const tr_config *config, const char *path, const char *what) {
    tr_error *mistake = &((tr_config *)(uintptr_t)config)->mistake;
    if (mistake->status == TR_OK) {
        tr_fail(mistake, TR_INTERNAL, "the key %.200s %s", path, what);
    }
}

tr_status tr__config_mistake(const tr_config *config, tr_error *err) {
    const tr_error *mistake = &config->mistake;
    return mistake->status == TR_OK
               ? TR_OK
               : tr_fail(err, mistake->status, "%s", mistake->message);
}

static bool is_listed(const tr_config *config, const char *path) {
    for (size_t i = 0; i < config->count; i++) {
        if (strcmp(config->entries[i].key->path, path) == 0) {
            return true;
        }
    }
    return false;
}

// NULL also where the key is not in force, which reads as a key with no value.
static const tr_entry *find(const tr_config *config, const char *path, unsigned types) {
    const tr_entry *entry = tr__config_entry(config, path);
    if (!entry && !is_listed(config, path)) {
        misuse(config, path, "is read, but is in no table");
    }
    if (entry && !(entry->key->types & types)) {
        misuse(config, path, "is read as a type that its table does not give it");
        return NULL;
    }
    return entry;
}

static json_t *value_of(const tr_config *config, const char *path, unsigned types) {
    const tr_entry *entry = find(config, path, types);
    return entry ? tr__entry_value(entry) : NULL;
}

bool tr__config_is_set(const tr_config *config, const char *path) {
    return value_of(config, path, ~0u) != NULL;
}

bool tr__config_is_given(const tr_config *config, const char *path) {
    const tr_entry *entry = find(config, path, ~0u);
    return entry && entry->given;
}

bool tr__config_is_auto(const tr_config *config, const char *path) {
    const tr_entry *entry = find(config, path, ~0u);
    return entry && entry->is_auto;
}

bool tr__config_is_decided(const tr_config *config, const char *path) {
    return tr__config_is_set(config, path) && !tr__config_is_auto(config, path);
}

tr_origin tr__config_origin(const tr_config *config, const char *path) {
    const tr_entry *entry = find(config, path, ~0u);
    return entry ? entry->origin : TR_ORIGIN_DEFAULT;
}

bool tr__config_bool(const tr_config *config, const char *path) {
    return json_is_true(value_of(config, path, TR_KEY_BOOL));
}

int64_t tr__config_int(const tr_config *config, const char *path) {
    return json_integer_value(value_of(config, path, TR_KEY_INT));
}

double tr__config_number(const tr_config *config, const char *path) {
    return json_number_value(value_of(config, path, TR_KEY_INT | TR_KEY_NUMBER));
}

const char *tr__config_text(const tr_config *config, const char *path) {
    return json_string_value(value_of(config, path, TR_KEY_TEXT));
}

int64_t tr__config_size(const tr_config *config, const char *path) {
    return json_integer_value(value_of(config, path, TR_KEY_SIZE));
}

unsigned tr__config_type(const tr_config *config, const char *path) {
    const tr_entry *entry = find(config, path, ~0u);
    const json_t *value = entry ? tr__entry_value(entry) : NULL;
    if (!value) {
        return 0;
    }
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return TR_KEY_OBJECT;
    case JSON_ARRAY:
        return TR_KEY_LIST;
    case JSON_STRING:
        return TR_KEY_TEXT;
    case JSON_INTEGER:
        return entry->key->types & TR_KEY_SIZE ? TR_KEY_SIZE : TR_KEY_INT;
    case JSON_REAL:
        return TR_KEY_NUMBER;
    default:
        return TR_KEY_BOOL;
    }
}

size_t tr__config_count(const tr_config *config, const char *path) {
    const json_t *value = value_of(config, path, ~0u);
    return json_is_array(value) ? json_array_size(value) : value != NULL;
}

static const json_t *element(const tr_config *config, const char *path, size_t index) {
    const json_t *value = value_of(config, path, ~0u);
    if (index >= tr__config_count(config, path)) {
        misuse(config, path, "has fewer elements than are read");
        return NULL;
    }
    return json_is_array(value) ? json_array_get(value, index) : value;
}

const char *tr__config_text_at(const tr_config *config, const char *path,
                               size_t index) {
    return json_string_value(element(config, path, index));
}

double tr__config_number_at(const tr_config *config, const char *path, size_t index) {
    return json_number_value(element(config, path, index));
}

json_t *tr__config_json(const tr_config *config, const char *path) {
    return value_of(config, path, ~0u);
}
