#include "models/fields.h"

#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

bool tr__field_whole(const json_t *value, int64_t *out) {
    double number = json_number_value(value);
    if (json_is_integer(value)) {
        *out = json_integer_value(value);
        return true;
    }
    // Beyond 2^53 not every integer is a double.
    if (!json_is_real(value) || number != floor(number) || fabs(number) > 0x1p53) {
        return false;
    }
    *out = (int64_t)number;
    return true;
}

static tr_status read_field(const tr_model_keys *keys, const tr_model_field *field,
                            tr_error *err) {
    const json_t *value = json_object_get(keys->object, field->name);
    if (!value || json_is_null(value)) {
        return TR_OK;
    }
    int64_t whole = 0;
    if (field->integer ? !tr__field_whole(value, &whole) : !json_is_number(value)) {
        return tr_fail(err, TR_USAGE, "%s: %s must be %s", keys->origin, field->name,
                       field->integer ? "a whole number" : "a number");
    }
    double number = json_number_value(value);
    if (!(number >= field->min && number <= field->max)) {
        return tr_fail(err, TR_USAGE, "%s: %s is %.12g; it must be %.12g to %.12g",
                       keys->origin, field->name, number, field->min, field->max);
    }
    if (field->integer) {
        *field->integer = whole;
    } else {
        *field->number = number;
    }
    return TR_OK;
}

tr_status tr__fields_read(const tr_model_keys *keys, const tr_model_field *fields,
                          size_t count, tr_error *err) {
    for (size_t i = 0; i < count; i++) {
        tr_status status = read_field(keys, &fields[i], err);
        if (status != TR_OK) {
            return status;
        }
    }
    return TR_OK;
}

int tr__field_choice(const tr_model_keys *keys, const char *name,
                     const char *const *choices, size_t count, int fallback,
                     tr_error *err) {
    const json_t *value = json_object_get(keys->object, name);
    if (!value || json_is_null(value)) {
        return fallback;
    }
    const char *text = json_string_value(value);
    for (size_t i = 0; text && i < count; i++) {
        if (strcmp(text, choices[i]) == 0) {
            return (int)i;
        }
    }
    const char *nearest = text ? tr__nearest(text, choices, count) : NULL;
    char all[256] = "";
    for (size_t i = 0; i < count; i++) {
        size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s\"%s\"", i ? ", " : "", choices[i]);
    }
    tr_fail(err, TR_USAGE, "%s: %s \"%.64s\" is not supported; supported are %s%s%s%s",
            keys->origin, name, text ? text : "(not a text)", all,
            nearest ? "; did you mean \"" : "", nearest ? nearest : "",
            nearest ? "\"?" : "");
    return -1;
}

tr_status tr__field_only(const tr_model_keys *keys, const char *name, bool value,
                         tr_error *err) {
    const json_t *given = json_object_get(keys->object, name);
    if (!given || json_is_null(given) ||
        (json_is_boolean(given) && json_is_true(given) == value)) {
        return TR_OK;
    }
    return tr_fail(err, TR_USAGE,
                   "%s: %s must be %s; other values are not yet supported",
                   keys->origin, name, value ? "true" : "false");
}

tr_status tr__fields_known(const tr_model_keys *keys, const char *const *names,
                           size_t count, tr_error *err) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)keys->object, key, value) {
        bool known = false;
        for (size_t i = 0; i < count && !known; i++) {
            known = strcmp(key, names[i]) == 0;
        }
        if (!known) {
            const char *nearest = tr__nearest(key, names, count);
            return tr_fail(err, TR_USAGE, "%s: unknown key \"%.64s\"%s%s%s",
                           keys->origin, key, nearest ? "; did you mean \"" : "",
                           nearest ? nearest : "", nearest ? "\"?" : "");
        }
    }
    return TR_OK;
}
