#include "convert/values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *tr__value_key(char *dst, const char *architecture, const char *name) {
    snprintf(dst, TR_VALUE_KEY_MAX, "%s.%s", architecture, name);
    return dst;
}

void tr__value_put_u32(tr_gguf_writer *writer, const char *architecture,
                       const char *name, int64_t value) {
    char key[TR_VALUE_KEY_MAX];
    tr__gguf_put_u32(writer, tr__value_key(key, architecture, name), (uint32_t)value);
}

void tr__value_put_float(tr_gguf_writer *writer, const char *architecture,
                         const char *name, double value) {
    char key[TR_VALUE_KEY_MAX];
    tr__gguf_put_float(writer, tr__value_key(key, architecture, name), (float)value);
}

static tr_status fail(const tr_gguf *gguf, const char *key, const char *wanted,
                      tr_error *err) {
    return tr_fail(err, TR_IO, "%s: the metadata's %s must be %s", tr__gguf_path(gguf),
                   key, wanted);
}

tr_status tr__value_integer(const tr_gguf *gguf, const char *key, int64_t *out,
                            tr_error *err) {
    const tr_gguf_value *value = tr__gguf_find(gguf, key);
    int64_t number = 0;
    if (!value) {
        return TR_OK;
    }
    if (value->array || value->kind == TR_GGUF_BOOL ||
        !tr__gguf_integer(value, 0, &number)) {
        return fail(gguf, key, "a whole number", err);
    }
    *out = number;
    return TR_OK;
}

tr_status tr__value_number(const tr_gguf *gguf, const char *key, double *out,
                           tr_error *err) {
    const tr_gguf_value *value = tr__gguf_find(gguf, key);
    double number = 0;
    if (!value) {
        return TR_OK;
    }
    if (value->array || value->kind == TR_GGUF_BOOL ||
        !tr__gguf_number(value, 0, &number)) {
        return fail(gguf, key, "a number", err);
    }
    *out = value->kind == TR_GGUF_FLOAT ? tr__value_shortest((float)number) : number;
    return TR_OK;
}

tr_status tr__value_bool(const tr_gguf *gguf, const char *key, bool *out,
                         tr_error *err) {
    const tr_gguf_value *value = tr__gguf_find(gguf, key);
    if (value && (value->array || value->kind != TR_GGUF_BOOL)) {
        return fail(gguf, key, "true or false", err);
    }
    *out = value ? value->data[0] != 0 : *out;
    return TR_OK;
}

tr_status tr__value_text(const tr_gguf *gguf, const char *key, const char **out,
                         tr_error *err) {
    const tr_gguf_value *value = tr__gguf_find(gguf, key);
    size_t bytes = 0;
    if (!value) {
        return TR_OK;
    }
    if (value->array || value->kind != TR_GGUF_TEXT) {
        return fail(gguf, key, "a text", err);
    }
    *out = tr__gguf_text(value, 0, &bytes);
    return strlen(*out) == bytes ? TR_OK : fail(gguf, key, "a text without a 0", err);
}

double tr__value_shortest(float value) {
    double found = (double)value;
    for (int digits = 1; digits <= 9; digits++) {
        char text[32];
        snprintf(text, sizeof text, "%.*g", digits, (double)value);
        found = strtod(text, NULL);
        if ((float)found == value) {
            break;
        }
    }
    return found;
}
