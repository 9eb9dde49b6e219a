// Every key of the run file to its entry.
#include "config/internal.h"

#include "base/memory.h"

#include <stdio.h>
#include <string.h>

// Finding a key's line is a walk through the text: of a long one, for objects alone.
enum { LINES_MAX_BYTES = 1 << 20 };

// Keys that exist everywhere first, then those that depend on the value of another.
typedef enum tr_pass { TR_PASS_FIRST, TR_PASS_DEPENDENT } tr_pass;

typedef enum path_kind { TR_NOWHERE, TR_LEAF, TR_GROUP } path_kind;

static path_kind place(const tr_config *config, const char *path) {
    size_t length = strlen(path);
    path_kind found = TR_NOWHERE;
    const tr_key *key;
    for (size_t i = 0; (key = tr__config_key(config, i)) != NULL; i++) {
        if (strncmp(key->path, path, length) != 0) {
            continue;
        }
        if (key->path[length] == '\0') {
            return TR_LEAF;
        }
        // "optimizer.groups" is a key, and no group for its "optimizer.groups.*.lr".
        if (key->path[length] == '.') {
            found = TR_GROUP;
        }
    }
    return found;
}

static const tr_key *any_key(const tr_config *config, const char *path) {
    const tr_key *key;
    for (size_t i = 0; (key = tr__config_key(config, i)) != NULL; i++) {
        if (strcmp(key->path, path) == 0) {
            return key;
        }
    }
    return NULL;
}

static tr_status fail_refused(const tr_config *config, const tr_key *key,
                              tr_error *err) {
    char where[TR_CONFIG_PATH_MAX * 2];
    tr__config_where(config, key->path, where, sizeof where);
    return tr_fail(err, TR_USAGE, "%s%s: %s", where, key->path, key->doc);
}

static tr_status fail_of_call(const tr_config *config, const tr_key *key,
                              tr_error *err) {
    char where[TR_CONFIG_PATH_MAX * 2];
    tr__config_where(config, key->path, where, sizeof where);
    return tr_fail(err, TR_USAGE,
                   "%s%s: no run file says this, but who runs it does: leave it out, "
                   "and give the command's option or call tr_run_set",
                   where, key->path);
}

// Is nobody to blame for a key where there is none? The value that it depends on may be
// wrong, so that it is not known whether it exists; or it is the file's, which has been
// ruled out.
static bool is_excused(const tr_config *config, const tr_key *key, const char *path) {
    const tr_entry *governor = tr__config_entry(config, key->where_key);
    return (governor && governor->wrong) ||
           (tr__config_path_origin(config, path) == TR_ORIGIN_FILE &&
            tr__config_rules_out(config, key->where_key));
}

static tr_status assign(tr_config *config, const char *path, json_t *value,
                        tr_pass pass, tr_error *err) {
    const tr_key *key = any_key(config, path);
    if ((key->where != NULL) != (pass == TR_PASS_DEPENDENT) || json_is_null(value)) {
        return TR_OK;
    }
    tr_entry *entry = tr__config_entry(config, path);
    if (!entry) {
        return is_excused(config, key, path)
                   ? TR_OK
                   : tr__config_misplaced(config, path, key, err);
    }
    key = entry->key;
    if (key->status == TR_KEY_REFUSED) {
        return fail_refused(config, key, err);
    }
    const char *source = tr__config_path_source(config, path);
    if (key->status == TR_KEY_OF_CALL && !source) {
        return fail_of_call(config, key, err);
    }
    entry->given = true;
    entry->origin = source ? TR_ORIGIN_SET : TR_ORIGIN_FILE;
    entry->source = source ? tr__strdup(source) : NULL;
    if (source && !entry->source) {
        return tr_fail(err, TR_MEMORY, "no memory for %s", path);
    }
    bool short_text = config->bytes <= LINES_MAX_BYTES;
    if ((json_is_object(value) || short_text) && entry->origin == TR_ORIGIN_FILE &&
        config->text) {
        entry->line = tr__config_line(config->text, config->bytes, path);
    }
    bool may_be_auto = key->allow_auto || key->status == TR_KEY_NO_MEANING;
    entry->is_auto = may_be_auto && json_is_string(value) &&
                     strcmp(json_string_value(value), "auto") == 0;
    if (entry->is_auto) {
        return TR_OK;
    }
    tr_status status = tr__config_check(config, key, path, value, &entry->value, err);
    entry->wrong = status != TR_OK;
    return status == TR_USAGE ? TR_OK : status;
}

static tr_status fail_dotted(const tr_config *config, const char *name, tr_error *err) {
    char shown[TR_CONFIG_PATH_MAX];
    tr__config_show_path(name, shown, sizeof shown);
    return tr_fail(err, TR_USAGE,
                   "%s: \"%s\": names have no dots; write nested objects", config->name,
                   shown);
}

static tr_status fail_not_group(const tr_config *config, const char *path,
                                const json_t *value, tr_error *err) {
    char where[TR_CONFIG_PATH_MAX * 2], shown[TR_CONFIG_PATH_MAX];
    tr__config_where(config, path, where, sizeof where);
    tr__config_show_value(value, shown, sizeof shown);
    return tr_fail(err, TR_USAGE, "%s%s is %s; expected an object", where, path, shown);
}

static tr_status walk(tr_config *config, json_t *object, char *path, size_t length,
                      tr_pass pass, tr_error *err);

// What is at `path`, `length` characters: the member `name` of an object.
static tr_status take(tr_config *config, const char *name, json_t *value, char *path,
                      size_t length, tr_pass pass, tr_error *err) {
    path_kind found = place(config, path);
    bool first = pass == TR_PASS_FIRST; // what is said in both is said once
    if (strchr(name, '.')) {
        return first ? fail_dotted(config, name, err) : TR_OK;
    }
    if (found == TR_LEAF) {
        return assign(config, path, value, pass, err);
    }
    if (found == TR_GROUP && json_is_object(value)) {
        return walk(config, value, path, length, pass, err);
    }
    if (!first || (found == TR_GROUP && json_is_null(value))) {
        return TR_OK;
    }
    return found == TR_GROUP ? fail_not_group(config, path, value, err)
                             : tr__config_unknown(config, path, err);
}

// `path`: [TR_CONFIG_PATH_MAX], that of `object`, `length` characters; used for its
// members'. What the user has to change is kept as a problem, and the walk goes on.
static tr_status walk(tr_config *config, json_t *object, char *path, size_t length,
                      tr_pass pass, tr_error *err) {
    const char *name;
    json_t *value;
    tr_status status = TR_OK;
    json_object_foreach(object, name, value) {
        bool ours = length == 0 &&
                    (strcmp(name, "origins") == 0 || strcmp(name, "derived") == 0);
        if (ours && json_is_object(value)) {
            continue;
        }
        tr_error found = {0};
        size_t size = TR_CONFIG_PATH_MAX - length;
        int written = snprintf(path + length, size, "%s%s", length ? "." : "", name);
        bool fits = written >= 0 && (size_t)written < size;
        if (fits) {
            take(config, name, value, path, length + (size_t)written, pass, &found);
        } else if (pass == TR_PASS_FIRST) {
            tr__config_unknown(config, path, &found);
        }
        if (found.status != TR_OK) {
            status = tr__config_problem(config, &found, err);
        }
        if (status != TR_OK) {
            break;
        }
    }
    path[length] = '\0';
    return status;
}

tr_status tr__config_walk(tr_config *config, tr_error *err) {
    char path[TR_CONFIG_PATH_MAX] = "";
    tr_status status = walk(config, config->root, path, 0, TR_PASS_FIRST, err);
    if (status == TR_OK) {
        status = walk(config, config->root, path, 0, TR_PASS_DEPENDENT, err);
    }
    return status;
}
