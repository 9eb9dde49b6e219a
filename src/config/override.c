// --set and the options of the command line, put into the file's tree.
#include "config/internal.h"

#include <stdio.h>
#include <string.h>

// The key of an override and what is after it.
typedef struct assignment {
    const char *key;
    size_t length;
    const char *value;
} assignment;

static bool split(const tr_config_override *override, assignment *part) {
    if (override->key) {
        *part = (assignment){override->key, strlen(override->key), override->value};
        return true;
    }
    const char *equals = strchr(override->value, '=');
    if (!equals) {
        return false;
    }
    *part =
        (assignment){override->value, (size_t)(equals - override->value), equals + 1};
    return true;
}

// Does one of the two paths lead to the other?
static bool touches(const assignment *part, const char *path) {
    size_t length = strlen(path);
    size_t common = length < part->length ? length : part->length;
    if (strncmp(part->key, path, common) != 0) {
        return false;
    }
    char next = length > common ? path[common] : '\0';
    if (part->length > common) {
        next = part->key[common];
    }
    return next == '\0' || next == '.' || next == '[';
}

// The last override that touches `path`; NULL: none does.
static const tr_config_override *last_of(const tr_config *config, const char *path) {
    assignment part;
    for (size_t i = config->override_count; i-- > 0;) {
        if (split(&config->overrides[i], &part) && touches(&part, path)) {
            return &config->overrides[i];
        }
    }
    return NULL;
}

tr_origin tr__config_path_origin(const tr_config *config, const char *path) {
    return last_of(config, path) ? TR_ORIGIN_SET : TR_ORIGIN_FILE;
}

static const char *source_of(const tr_config_override *override) {
    return override->source ? override->source : "--set";
}

const char *tr__config_path_source(const tr_config *config, const char *path) {
    const tr_config_override *override = last_of(config, path);
    return override ? source_of(override) : NULL;
}

bool tr__config_is_literal(const tr_config *config, const char *path) {
    const tr_config_override *override = last_of(config, path);
    return override && override->literal;
}

bool tr__config_rules_out(const tr_config *config, const char *path) {
    const tr_config_override *override = last_of(config, path);
    return override && override->rules_out;
}

static tr_status fail_memory(tr_error *err) {
    return tr_fail(err, TR_MEMORY, "no memory for the settings of the command line");
}

static tr_status make_text(const tr_config_override *override, const char *text,
                           json_t **out, tr_error *err) {
    *out = json_string(text);
    if (*out) {
        return TR_OK;
    }
    // Why not? Without the check for UTF-8 only memory can be missing.
    json_t *unchecked = json_string_nocheck(text);
    if (!unchecked) {
        return fail_memory(err);
    }
    json_decref(unchecked);
    return tr_fail(err, TR_USAGE, "%s%s%s: the value is not valid UTF-8",
                   source_of(override), override->key ? ": " : "",
                   override->key ? override->key : "");
}

// Is `value` text that only looks like something else, for a key that takes text?
static bool wants_text(const tr_config *config, const assignment *part,
                       const json_t *value) {
    unsigned type = json_is_boolean(value)   ? TR_KEY_BOOL
                    : json_is_integer(value) ? TR_KEY_INT | TR_KEY_NUMBER | TR_KEY_SIZE
                    : json_is_real(value)    ? TR_KEY_NUMBER
                                             : 0;
    const tr_key *key;
    for (size_t i = 0; type && (key = tr__config_key(config, i)) != NULL; i++) {
        if (strlen(key->path) == part->length &&
            strncmp(key->path, part->key, part->length) == 0) {
            return key->types & TR_KEY_TEXT && !(key->types & type);
        }
    }
    return false;
}

static tr_status make_value(const tr_config *config, const tr_config_override *override,
                            const assignment *part, json_t **out, tr_error *err) {
    if (override->literal) {
        return make_text(override, part->value, out, err);
    }
    json_error_t problem;
    memset(&problem, 0, sizeof problem);
    json_t *value =
        json_loads(part->value, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &problem);
    if (!value && json_error_code(&problem) == json_error_out_of_memory) {
        return fail_memory(err);
    }
    if (!value && json_error_code(&problem) == json_error_duplicate_key) {
        return tr_fail(err, TR_USAGE, "%s: %.*s: %s", source_of(override),
                       (int)part->length, part->key, problem.text);
    }
    if (value && !wants_text(config, part, value)) {
        *out = value;
        return TR_OK;
    }
    json_decref(value);
    return make_text(override, part->value, out, err);
}

// The object in `tree` that `key` belongs to, made where it is missing.
static tr_status descend(json_t *tree, const char *name, json_t **out, tr_error *err) {
    json_t *inner = json_object_get(tree, name);
    if (!inner || json_is_null(inner)) {
        inner = json_object();
        if (!inner || json_object_set_new(tree, name, inner) != 0) {
            return fail_memory(err);
        }
    }
    *out = inner;
    return TR_OK;
}

static tr_status put(json_t *tree, const char *name, json_t *value, bool more,
                     tr_error *err) {
    json_t *list = json_object_get(tree, name);
    bool failed = more && json_is_array(list)
                      ? json_array_append_new(list, value) != 0
                      : json_object_set_new(tree, name, value) != 0;
    return failed ? fail_memory(err) : TR_OK;
}

// Has the last override of the same key before number `index` begun a list to add to?
static bool begun(const tr_config *config, size_t index, const assignment *part) {
    assignment earlier;
    for (size_t i = index; i-- > 0;) {
        const tr_config_override *other = &config->overrides[i];
        if (split(other, &earlier) && earlier.length == part->length &&
            strncmp(earlier.key, part->key, part->length) == 0) {
            return other->append;
        }
    }
    return false;
}

// Takes `value`.
static tr_status set(tr_config *config, size_t index, const char *path, json_t *value,
                     const assignment *part, tr_error *err) {
    const char *words = source_of(&config->overrides[index]);
    char names[TR_CONFIG_PATH_MAX];
    snprintf(names, sizeof names, "%s", path);
    json_t *tree = config->root;
    tr_status status = TR_OK;
    char *name = names, *dot;
    while (status == TR_OK && (dot = strchr(name, '.')) != NULL) {
        *dot = '\0';
        status = descend(tree, name, &tree, err);
        if (status == TR_OK && !json_is_object(tree)) {
            char shown[TR_CONFIG_PATH_MAX];
            tr__config_show_value(tree, shown, sizeof shown);
            status = tr_fail(err, TR_USAGE, "%s: %s: %s is %s, not an object", words,
                             path, name, shown);
        }
        name = dot + 1;
    }
    if (status != TR_OK) {
        json_decref(value);
        return status;
    }
    if (config->overrides[index].append && !json_is_array(value)) {
        if (!begun(config, index, part)) {
            status = put(tree, name, json_array(), false, err);
        }
        if (status != TR_OK) {
            json_decref(value);
            return status;
        }
        return put(tree, name, value, true, err);
    }
    return put(tree, name, value, false, err);
}

static tr_status apply(tr_config *config, size_t index, tr_error *err) {
    const tr_config_override *override = &config->overrides[index];
    const char *words = source_of(override);
    char path[TR_CONFIG_PATH_MAX], shown[TR_CONFIG_PATH_MAX];
    assignment part;
    if (!split(override, &part)) {
        tr__config_show_path(override->value, shown, sizeof shown);
        return tr_fail(err, TR_USAGE, "%s: \"%s\" is not KEY.PATH=VALUE", words, shown);
    }
    if (part.length == 0 || part.length >= sizeof path) {
        return tr_fail(err, TR_USAGE, "%s: a key of %zu characters", words,
                       part.length);
    }
    memcpy(path, part.key, part.length);
    path[part.length] = '\0';
    json_t *value = NULL, *name = NULL;
    tr_status status = make_text(override, path, &name, err); // is the key UTF-8?
    json_decref(name);
    if (status == TR_OK) {
        status = make_value(config, override, &part, &value, err);
    }
    if (status == TR_OK) {
        status = set(config, index, path, value, &part, err);
    }
    return status == TR_OK ? tr__config_name_values(config, err) : status;
}

tr_status tr__config_override(tr_config *config, tr_error *err) {
    tr_status status = TR_OK;
    for (size_t i = 0; i < config->override_count && status == TR_OK; i++) {
        tr_error found = {0};
        if (apply(config, i, &found) != TR_OK) {
            status = tr__config_problem(config, &found, err);
        }
    }
    return status;
}
