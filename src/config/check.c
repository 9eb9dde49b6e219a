// One value against one key: type, range, choices; and its stored form.
#include "config/internal.h"

#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { WORDS_MAX = 512 };

// What a check of one value found.
typedef enum tr_finding {
    TR_FITS,
    TR_WRONG,    // type, range, choice
    TR_TOO_SOON, // one of key->later
    TR_NO_MEMORY,
} tr_finding;

static bool in_range(const tr_key *key, double value) {
    if (key->min == 0 && key->max == 0) {
        return true;
    }
    return value >= key->min &&
           (key->max_excluded ? value < key->max : value <= key->max);
}

static tr_finding keep(json_t *stored, json_t **out) {
    *out = stored;
    return stored ? TR_FITS : TR_NO_MEMORY;
}

static tr_finding check_integer(const tr_key *key, unsigned types, json_int_t value,
                                json_t **out) {
    bool size = types & TR_KEY_SIZE && !(types & TR_KEY_INT);
    if (!(types & (TR_KEY_INT | TR_KEY_SIZE | TR_KEY_NUMBER)) ||
        !in_range(key, (double)value) || (size && value < 0)) {
        return TR_WRONG;
    }
    if (!(types & (TR_KEY_INT | TR_KEY_SIZE))) {
        return keep(json_real((double)value), out);
    }
    return keep(json_integer(value), out);
}

static tr_finding check_real(const tr_key *key, unsigned types, double value,
                             json_t **out) {
    if (types & TR_KEY_NUMBER) {
        return in_range(key, value) ? keep(json_real(value), out) : TR_WRONG;
    }
    // 5e8 is how people write bucket sizes. Beyond 2^53 not every integer is a double.
    if (types & (TR_KEY_INT | TR_KEY_SIZE) && value == floor(value) &&
        fabs(value) <= 0x1p53) {
        return check_integer(key, types, (json_int_t)value, out);
    }
    return TR_WRONG;
}

static bool among(const char *const *names, const char *text, const char **spelt) {
    for (; names && *names; names++) {
        if (strcasecmp(*names, text) == 0) {
            *spelt = *names;
            return true;
        }
    }
    return false;
}

// "cuda:1", with a name of `names`, which *name then is; `*number`: ":1".
static bool is_numbered(const char *const *names, const char *text, const char **name,
                        const char **number) {
    size_t length = strcspn(text, ":");
    const char *digits = text + length + 1;
    bool found = false;
    *number = text + length;
    for (; names && *names && text[length] && !found; names++) {
        *name = *names;
        found = strlen(*names) == length && !strncasecmp(*names, text, length);
    }
    return found && digits[0] && strlen(digits) <= 9 &&
           digits[strspn(digits, "0123456789")] == '\0';
}

static tr_finding check_string(const tr_key *key, unsigned types, json_t *value,
                               json_t **out) {
    const char *text = json_string_value(value), *spelt = text, *number = "";
    int64_t bytes = 0;
    if (types & TR_KEY_SIZE && tr__parse_size(text, &bytes)) {
        return check_integer(key, types, bytes, out);
    }
    if (!(types & TR_KEY_TEXT)) {
        return TR_WRONG;
    }
    if (!key->choices) {
        return keep(json_incref(value), out);
    }
    if (key->numbered && is_numbered(key->choices, text, &spelt, &number)) {
        return keep(json_sprintf("%s%s", spelt, number), out);
    }
    if (!among(key->choices, text, &spelt)) {
        return among(key->later, text, &spelt) ? TR_TOO_SOON : TR_WRONG;
    }
    return keep(json_string(spelt), out);
}

static tr_finding check_scalar(const tr_key *key, unsigned types, json_t *value,
                               json_t **out) {
    switch (json_typeof(value)) {
    case JSON_INTEGER:
        return check_integer(key, types, json_integer_value(value), out);
    case JSON_REAL:
        return check_real(key, types, json_real_value(value), out);
    case JSON_STRING:
        return check_string(key, types, value, out);
    case JSON_TRUE:
    case JSON_FALSE:
        return types & TR_KEY_BOOL ? keep(json_incref(value), out) : TR_WRONG;
    case JSON_OBJECT:
        return types & TR_KEY_OBJECT ? keep(json_incref(value), out) : TR_WRONG;
    default:
        return TR_WRONG;
    }
}

static tr_status fail_value(const tr_config *config, const tr_key *key,
                            const char *path, const json_t *value, tr_finding finding,
                            tr_error *err) {
    char where[WORDS_MAX], given[WORDS_MAX], wanted[WORDS_MAX];
    tr__config_where(config, path, where, sizeof where);
    tr__config_show_value(value, given, sizeof given);
    tr__config_show_wanted(key, wanted, sizeof wanted);
    if (finding == TR_NO_MEMORY) {
        return tr_fail(err, TR_MEMORY, "no memory for %s", path);
    }
    if (finding == TR_TOO_SOON) {
        return tr_fail(err, TR_USAGE,
                       "%s%s: %s is not yet supported; this version has %s", where,
                       path, given, wanted);
    }
    if (json_is_number(value) && key->max >= 0x1p53 &&
        json_number_value(value) > key->max) {
        // A bound so far away is told only to those who have passed it.
        size_t used = strlen(wanted);
        snprintf(wanted + used, sizeof wanted - used, " (at most %.16g)", key->max);
    }
    const char *near = NULL;
    if (json_is_string(value) && key->choices) {
        size_t count = 0;
        while (key->choices[count]) {
            count++;
        }
        near = tr__nearest(json_string_value(value), key->choices, count);
    }
    return tr_fail(err, TR_USAGE, "%s%s is %s; expected %s%s%s%s", where, path, given,
                   wanted, near ? "; did you mean \"" : "", near ? near : "",
                   near ? "\"?" : "");
}

static tr_status fail_member(const tr_config *config, const char *path,
                             const char *pattern, const char *member, tr_error *err) {
    char where[WORDS_MAX], shown[TR_CONFIG_PATH_MAX], names[WORDS_MAX] = "";
    size_t prefix = strlen(pattern);
    tr__config_where(config, path, where, sizeof where);
    tr__config_show_path(member, shown, sizeof shown);
    const tr_key *key;
    for (size_t i = 0; (key = tr__config_key(config, i)) != NULL; i++) {
        if (strncmp(key->path, pattern, prefix) == 0) {
            size_t used = strlen(names);
            snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "",
                     key->path + prefix);
        }
    }
    return tr_fail(err, TR_USAGE, "%s%s.%s: no such key; known here: %s", where, path,
                   shown, names);
}

static const tr_key *find_pattern(const tr_config *config, const char *pattern,
                                  const char *member) {
    size_t prefix = strlen(pattern);
    const tr_key *key;
    for (size_t i = 0; (key = tr__config_key(config, i)) != NULL; i++) {
        if (strncmp(key->path, pattern, prefix) == 0 &&
            strcmp(key->path + prefix, member) == 0) {
            return key;
        }
    }
    return NULL;
}

// What the user has to change is a problem of the config, and the check goes on.
static tr_status told(tr_config *config, const tr_error *found, tr_error *err) {
    tr_status status = tr__config_problem(config, found, err);
    return status == TR_OK ? TR_USAGE : status;
}

// Of two values that were checked one after the other.
static tr_status worse(tr_status a, tr_status b) {
    return a == TR_OK || a == TR_USAGE ? (b == TR_OK ? a : b) : a;
}

static tr_status tell_value(tr_config *config, const tr_key *key, const char *path,
                            const json_t *value, tr_finding finding, tr_error *err) {
    tr_error mine = {0};
    if (finding == TR_FITS) {
        return TR_OK;
    }
    fail_value(config, key, path, value, finding, &mine);
    return told(config, &mine, err);
}

// Puts the member's stored form into `stored`.
static tr_status check_member(tr_config *config, const char *pattern, const char *path,
                              const char *member, json_t *value, json_t *stored,
                              tr_error *err) {
    const tr_key *key = find_pattern(config, pattern, member);
    if (!key) {
        tr_error mine = {0};
        fail_member(config, path, pattern, member, &mine);
        return told(config, &mine, err);
    }
    char inner[TR_CONFIG_PATH_MAX * 2];
    json_t *checked = NULL;
    if (json_is_null(value)) { // as good as left out
        return TR_OK;
    }
    snprintf(inner, sizeof inner, "%s.%s", path, member);
    tr_status status = tr__config_check(config, key, inner, value, &checked, err);
    if (status == TR_OK && json_object_set_new(stored, member, checked) != 0) {
        status = tr_fail(err, TR_MEMORY, "no memory for %s", path);
    }
    return status;
}

// An element that is an object with keys of its own ("LIST.*.KEY"): its stored form.
// `pattern` is "LIST.*.", `path` "LIST[3]".
static tr_status check_members(tr_config *config, const char *pattern, const char *path,
                               json_t *object, json_t **out, tr_error *err) {
    const char *member;
    json_t *value;
    json_t *stored = json_object();
    tr_status status =
        stored ? TR_OK : tr_fail(err, TR_MEMORY, "no memory for %s", path);
    json_object_foreach(object, member, value) {
        if (status == TR_OK || status == TR_USAGE) {
            status = worse(status, check_member(config, pattern, path, member, value,
                                                stored, err));
        }
    }
    if (status != TR_OK) {
        json_decref(stored);
        stored = NULL;
    }
    *out = stored;
    return status;
}

static bool has_pattern(const tr_config *config, const char *pattern) {
    const tr_key *key;
    for (size_t i = 0; (key = tr__config_key(config, i)) != NULL; i++) {
        if (strncmp(key->path, pattern, strlen(pattern)) == 0) {
            return true;
        }
    }
    return false;
}

static tr_status check_element(tr_config *config, const tr_key *key, const char *path,
                               json_t *value, json_t **out, tr_error *err) {
    char pattern[TR_CONFIG_PATH_MAX];
    snprintf(pattern, sizeof pattern, "%s.*.", key->path);
    if (json_is_object(value) && key->elements & TR_KEY_OBJECT &&
        has_pattern(config, pattern)) {
        return check_members(config, pattern, path, value, out, err);
    }
    tr_finding finding = TR_WRONG;
    tr_key each = *key; // what the list's key says of an element
    each.types = key->elements;
    each.allow_auto = false;
    if (key->elements == 0) {
        finding = keep(json_incref(value), out);
    } else if (!json_is_array(value)) {
        finding = check_scalar(&each, each.types, value, out);
    }
    return tell_value(config, &each, path, value, finding, err);
}

static tr_status check_list(tr_config *config, const tr_key *key, const char *path,
                            json_t *list, json_t **out, tr_error *err) {
    size_t count = json_array_size(list);
    if (!(key->types & TR_KEY_LIST) || (key->length && count != (size_t)key->length)) {
        return tell_value(config, key, path, list, TR_WRONG, err);
    }
    json_t *stored = json_array();
    tr_status status =
        stored ? TR_OK : tr_fail(err, TR_MEMORY, "no memory for %s", path);
    for (size_t i = 0; i < count && (status == TR_OK || status == TR_USAGE); i++) {
        char inner[TR_CONFIG_PATH_MAX + 32];
        json_t *element = NULL, *value = json_array_get(list, i);
        snprintf(inner, sizeof inner, "%s[%zu]", path, i);
        tr_status one = check_element(config, key, inner, value, &element, err);
        if (one == TR_OK && json_array_append_new(stored, element) != 0) {
            one = tr_fail(err, TR_MEMORY, "no memory for %s", path);
        }
        status = worse(status, one);
    }
    if (status != TR_OK) {
        json_decref(stored);
        return status;
    }
    *out = stored;
    return TR_OK;
}

tr_status tr__config_check(tr_config *config, const tr_key *key, const char *path,
                           json_t *value, json_t **out, tr_error *err) {
    if (json_is_array(value)) {
        return check_list(config, key, path, value, out, err);
    }
    tr_finding finding = check_scalar(key, key->types, value, out);
    return tell_value(config, key, path, value, finding, err);
}
