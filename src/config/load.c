#include "config/internal.h"

#include "base/files.h"
#include "base/memory.h"

#include <string.h>

static tr_status fail_syntax(const char *name, const json_error_t *problem,
                             tr_error *err) {
    // Without a message of its own, jansson ran out of memory on the way.
    if (problem->text[0] == '\0' ||
        json_error_code(problem) == json_error_out_of_memory) {
        return tr_fail(err, TR_MEMORY, "no memory to read %s", name);
    }
    char text[JSON_ERROR_TEXT_LENGTH + 1];
    tr__config_show_path(problem->text, text, sizeof text);
    return tr_fail(err, TR_USAGE, "%s:%d:%d: not valid JSON: %s", name, problem->line,
                   problem->column, text);
}

tr_status tr__config_load(const char *name, const char *text, size_t bytes,
                          json_t **root, tr_error *err) {
    if (bytes > TR_CONFIG_BYTES_MAX) {
        return tr_fail(err, TR_USAGE, "%s: %zu bytes, more than the %d that are read",
                       name, bytes, (int)TR_CONFIG_BYTES_MAX);
    }
    json_error_t problem;
    memset(&problem, 0, sizeof problem);
    json_t *value = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &problem);
    if (!value) {
        return fail_syntax(name, &problem, err);
    }
    if (!json_is_object(value)) {
        json_decref(value);
        return tr_fail(err, TR_USAGE, "%s: it must be one JSON object { ... }", name);
    }
    *root = value;
    return TR_OK;
}

// The default of an entry.
static tr_status fill_fallback(tr_config *config, tr_entry *entry, tr_error *err) {
    const tr_key *key = entry->key;
    json_t *fallback = json_loads(key->fallback, JSON_DECODE_ANY, NULL);
    if (!fallback) {
        return tr_fail(err, TR_MEMORY, "no memory for the default of %s", key->path);
    }
    tr_status status = TR_OK;
    entry->is_auto = key->allow_auto && json_is_string(fallback) &&
                     strcmp(json_string_value(fallback), "auto") == 0;
    if (!entry->is_auto) {
        status =
            tr__config_check(config, key, key->path, fallback, &entry->fallback, err);
    }
    json_decref(fallback);
    return status == TR_USAGE ? tr__problems_end(&config->problems, err) : status;
}

static tr_status fill_entries(tr_config *config, tr_error *err) {
    size_t capacity = 0;
    while (tr__config_key(config, capacity)) {
        capacity++;
    }
    config->entries = tr__calloc(capacity, sizeof *config->entries);
    if (!config->entries) {
        return tr_fail(err, TR_MEMORY, "no memory for the keys of a run file");
    }
    for (size_t i = 0; i < capacity; i++) {
        const tr_key *key = tr__config_key(config, i);
        if (strchr(key->path, '*')) {
            continue;
        }
        tr_entry *entry = &config->entries[config->count++];
        entry->key = key;
        tr_status status = key->fallback ? fill_fallback(config, entry, err) : TR_OK;
        if (status != TR_OK) {
            return status;
        }
    }
    return TR_OK;
}

static tr_status build(tr_config *config, tr_error *err) {
    tr_status status = fill_entries(config, err);
    if (status == TR_OK && config->text) {
        status = tr__config_load(config->name, config->text, config->bytes,
                                 &config->root, err);
    }
    if (status == TR_OK && !config->root && !(config->root = json_object())) {
        status = tr_fail(err, TR_MEMORY, "no memory for a run file");
    }
    if (status == TR_OK) {
        status = tr__config_name_values(config, err);
    }
    if (status == TR_OK) {
        status = tr__config_override(config, err);
    }
    if (status == TR_OK) {
        status = tr__config_walk(config, err);
    }
    if (status == TR_OK) {
        status = tr__config_ready(config, err);
    }
    return status == TR_OK ? tr__problems_end(&config->problems, err) : status;
}

// Editors on Windows begin a file of UTF-8 with a mark.
static size_t mark_bytes(const char *text, size_t bytes) {
    static const char mark[] = "\xEF\xBB\xBF";
    size_t length = sizeof mark - 1;
    return text && bytes >= length && memcmp(text, mark, length) == 0 ? length : 0;
}

// The text without what is no JSON, freed by the caller when the config has been built.
static tr_status make_plain(tr_config *config, const tr_config_text *file, char **plain,
                            tr_error *err) {
    const char *text = file->text;
    size_t mark = mark_bytes(text, file->bytes);
    config->bytes = file->bytes - mark;
    if (config->bytes > TR_CONFIG_BYTES_MAX) {
        config->text = text + mark; // refused where it is loaded
        return TR_OK;
    }
    *plain = tr__calloc(config->bytes + 1, 1);
    if (!*plain) {
        return tr_fail(err, TR_MEMORY, "no memory to read %s", config->name);
    }
    memcpy(*plain, text + mark, config->bytes);
    config->text = *plain;
    return tr__config_plain(config->name, *plain, config->bytes, err);
}

tr_status tr__config_parse(const tr_config_text *file,
                           const tr_key_table *const *tables, size_t table_count,
                           const tr_config_override *overrides, size_t override_count,
                           tr_config **out, tr_error *err) {
    tr_config *config = tr__calloc(1, sizeof *config);
    char *copy = tr__strdup(file->name ? file->name : "run file");
    if (!config || !copy) {
        tr__free(config);
        tr__free(copy);
        return tr_fail(err, TR_MEMORY, "no memory for a run file");
    }
    config->name = copy;
    config->tables = tables;
    config->table_count = table_count;
    config->overrides = overrides;
    config->override_count = override_count;
    char *plain = NULL;
    tr_status status = file->text ? make_plain(config, file, &plain, err) : TR_OK;
    if (status == TR_OK) {
        status = build(config, err);
    }
    tr__free(plain);
    // What belongs to the caller is not kept.
    config->text = NULL;
    config->overrides = NULL;
    config->override_count = 0;
    json_decref(config->root);
    config->root = NULL;
    if (status != TR_OK) {
        tr__config_destroy(config);
        return status;
    }
    *out = config;
    return TR_OK;
}

tr_status tr__config_open(const char *path, const tr_key_table *const *tables,
                          size_t table_count, const tr_config_override *overrides,
                          size_t override_count, tr_config **out, tr_error *err) {
    char *text = NULL;
    size_t bytes = 0;
    if (path) {
        tr_error problem = {0};
        tr_status status =
            tr__file_read(path, TR_CONFIG_BYTES_MAX, &text, &bytes, &problem);
        if (status != TR_OK) {
            // A run file that is not there is a wrong argument, not a failing disk.
            return tr_fail(err, status == TR_IO ? TR_USAGE : status, "%s",
                           problem.message);
        }
    }
    tr_config_text file = {path, text, bytes};
    tr_status status = tr__config_parse(&file, tables, table_count, overrides,
                                        override_count, out, err);
    tr__free(text);
    return status;
}

void tr__config_destroy(tr_config *config) {
    if (!config) {
        return;
    }
    for (size_t i = 0; i < config->count; i++) {
        json_decref(config->entries[i].value);
        json_decref(config->entries[i].fallback);
        tr__free(config->entries[i].why);
        tr__free(config->entries[i].source);
    }
    tr__free(config->entries);
    tr__free(config->no_meaning);
    tr__free(config->name);
    tr__free(config);
}
