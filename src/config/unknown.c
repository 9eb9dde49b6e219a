// Errors for keys that are not there, with what was probably meant.
#include "config/internal.h"

#include "base/memory.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { NAME_MAX_BYTES = 64, WORDS_MAX = 512 };

typedef char tr_name[NAME_MAX_BYTES];

// May a message propose the key? Where there is no config, any may come to be in force.
static bool is_offered(const tr_config *config, const tr_key *key) {
    return key->status != TR_KEY_OF_CALL &&
           (config->count == 0 || tr__config_in_force(config, key));
}

// The names that may follow `prefix` ("zero_optimization.", or "").
static size_t siblings(const tr_config *config, const char *prefix, tr_name *names) {
    size_t count = 0, length = strlen(prefix);
    const tr_key *key;
    for (size_t i = 0; (key = tr__config_key(config, i)) != NULL; i++) {
        if (strncmp(key->path, prefix, length) != 0 || !is_offered(config, key)) {
            continue;
        }
        tr_name name;
        size_t end = strcspn(key->path + length, ".");
        snprintf(name, sizeof name, "%.*s", (int)(end % sizeof name),
                 key->path + length);
        bool seen = strcmp(name, "*") == 0;
        for (size_t j = 0; j < count && !seen; j++) {
            seen = strcmp(names[j], name) == 0;
        }
        if (!seen) {
            memcpy(names[count++], name, sizeof name);
        }
    }
    return count;
}

// A key elsewhere with the same last name: "lr" is at optimizer.params.lr.
static const char *elsewhere(const tr_config *config, const char *name) {
    const tr_key *key;
    for (size_t i = 0; (key = tr__config_key(config, i)) != NULL; i++) {
        const char *dot = strrchr(key->path, '.');
        if (dot && strcmp(dot + 1, name) == 0 && !strchr(key->path, '*') &&
            is_offered(config, key)) {
            return key->path;
        }
    }
    return NULL;
}

static const tr_key_name *foreign_name(const tr_config *config, const char *name) {
    for (size_t i = 0; i < config->table_count; i++) {
        const tr_key_name *row = config->tables[i]->names;
        for (; row && row->name; row++) {
            if (strcasecmp(row->name, name) == 0) {
                return row;
            }
        }
    }
    return NULL;
}

static void add_names(tr_name *names, size_t count, char *dst, size_t size) {
    snprintf(dst, size, "; known here: ");
    for (size_t i = 0; i < count; i++) {
        size_t used = strlen(dst);
        bool last = used + 2 * NAME_MAX_BYTES > size;
        snprintf(dst + used, size - used, "%s%s", i ? ", " : "",
                 last ? "..." : names[i]);
        if (last) {
            break;
        }
    }
}

// What was probably meant by `name` after `prefix`, in words.
static tr_status suggest(const tr_config *config, const char *prefix, const char *name,
                         char *dst, size_t size, tr_error *err) {
    size_t keys = 0;
    while (tr__config_key(config, keys)) {
        keys++;
    }
    tr_name *names = tr__calloc(keys, sizeof *names);
    const char **pointers = tr__calloc(keys, sizeof *pointers);
    tr_status status = TR_OK;
    if (!names || !pointers) {
        status = tr_fail(err, TR_MEMORY, "no memory to look up %s%s", prefix, name);
        goto cleanup;
    }
    size_t count = siblings(config, prefix, names);
    for (size_t i = 0; i < count; i++) {
        pointers[i] = names[i];
    }
    const char *other = elsewhere(config, name);
    const char *near = tr__nearest(name, pointers, count);
    const tr_key_name *foreign = foreign_name(config, name);
    if (foreign && foreign->instead) {
        snprintf(dst, size, "; %s", foreign->instead);
    } else if (foreign) {
        snprintf(dst, size, "; did you mean \"%s\"?", foreign->path);
    } else if (other) {
        snprintf(dst, size, "; did you mean \"%s\"?", other);
    } else if (near) {
        snprintf(dst, size, "; did you mean \"%s%s\"?", prefix, near);
    } else {
        add_names(names, count, dst, size);
    }
cleanup:
    tr__free(pointers);
    tr__free(names);
    return status;
}

tr_status tr__config_unknown(const tr_config *config, const char *path, tr_error *err) {
    char where[WORDS_MAX], shown[TR_CONFIG_PATH_MAX], words[WORDS_MAX] = "";
    char prefix[TR_CONFIG_PATH_MAX] = "";
    const char *dot = strrchr(path, '.'), *name = dot ? dot + 1 : path;
    snprintf(prefix, sizeof prefix, "%.*s", (int)(name - path), path);
    tr__config_where(config, path, where, sizeof where);
    tr__config_show_path(path, shown, sizeof shown);
    tr_status status = suggest(config, prefix, name, words, sizeof words, err);
    if (status != TR_OK) {
        return status;
    }
    return tr_fail(err, TR_USAGE, "%s%s: no such key%s", where, shown, words);
}

tr_status tr__config_misplaced(const tr_config *config, const char *path,
                               const tr_key *key, tr_error *err) {
    char where[WORDS_MAX], words[WORDS_MAX] = "", prefix[TR_CONFIG_PATH_MAX] = "";
    const char *dot = strrchr(path, '.'), *name = dot ? dot + 1 : path;
    snprintf(prefix, sizeof prefix, "%.*s", (int)(name - path), path);
    tr__config_where(config, path, where, sizeof where);
    if (tr__config_is_literal(config, path)) { // no key was spelt
        snprintf(words, sizeof words,
                 "; set another (--set %s=...), or leave the option out",
                 key->where_key);
    } else if (suggest(config, prefix, name, words, sizeof words, err) != TR_OK) {
        return TR_MEMORY;
    }
    const tr_entry *entry = tr__config_entry(config, key->where_key);
    const json_t *type = entry ? tr__entry_value(entry) : NULL;
    return tr_fail(err, TR_USAGE, "%s%s: there is no such key where %s is \"%s\"%s",
                   where, path, key->where_key, type ? json_string_value(type) : "",
                   words);
}
