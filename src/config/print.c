// JSON text with the shortest numbers that read back as the same bits; jansson 2.14
// writes 0.1 as 0.10000000000000001.
#include "config/internal.h"

#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct printed {
    char *data;
    size_t length, capacity;
    bool failed;
    int indent;
} printed;

static void append(printed *text, const char *bytes, size_t count) {
    void *data = text->data;
    if (text->failed ||
        !tr__grow(&data, &text->capacity, text->length + count + 1, 1)) {
        text->failed = true;
        return;
    }
    text->data = data;
    memcpy(text->data + text->length, bytes, count);
    text->length += count;
    text->data[text->length] = '\0';
}

static void append_text(printed *text, const char *words) {
    append(text, words, strlen(words));
}

static void append_string(printed *text, const char *string, size_t length) {
    append(text, "\"", 1);
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)string[i];
        char escaped[8];
        if (c == '"' || c == '\\') {
            snprintf(escaped, sizeof escaped, "\\%c", c);
            append_text(text, escaped);
        } else if (c < 0x20 || c == 0x7f) {
            snprintf(escaped, sizeof escaped, "\\u%04x", c);
            append_text(text, escaped);
        } else {
            append(text, string + i, 1);
        }
    }
    append(text, "\"", 1);
}

static void append_real(printed *text, double value) {
    char digits[40];
    for (int precision = 15; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (strtod(digits, NULL) == value) {
            break;
        }
    }
    // A program around the library may have set a locale with another decimal point.
    for (char *c = digits; *c; c++) {
        if (!strchr("0123456789+-eE", *c)) {
            *c = '.';
        }
    }
    append_text(text, digits);
    if (!strpbrk(digits, ".e")) {
        append_text(text, ".0");
    }
}

static void new_line(printed *text, int depth) {
    if (text->indent == 0) {
        return;
    }
    append(text, "\n", 1);
    for (int i = 0; i < depth * text->indent; i++) {
        append(text, " ", 1);
    }
}

static void append_value(printed *text, const json_t *value, int depth);

static void append_array(printed *text, const json_t *array, int depth) {
    size_t count = json_array_size(array);
    append(text, "[", 1);
    for (size_t i = 0; i < count; i++) {
        append_text(text, i ? ", " : "");
        append_value(text, json_array_get(array, i), depth);
    }
    append(text, "]", 1);
}

static void append_object(printed *text, const json_t *object, int depth) {
    const char *key;
    json_t *value;
    const char *comma = "";
    append(text, "{", 1);
    json_object_foreach((json_t *)object, key, value) {
        append_text(text, comma);
        new_line(text, depth + 1);
        append_string(text, key, strlen(key));
        append(text, ": ", 2);
        append_value(text, value, depth + 1);
        comma = text->indent ? "," : ", ";
    }
    if (*comma) {
        new_line(text, depth);
    }
    append(text, "}", 1);
}

static void append_value(printed *text, const json_t *value, int depth) {
    char digits[32];
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        append_object(text, value, depth);
        break;
    case JSON_ARRAY:
        append_array(text, value, depth);
        break;
    case JSON_STRING:
        append_string(text, json_string_value(value), json_string_length(value));
        break;
    case JSON_INTEGER:
        snprintf(digits, sizeof digits, "%lld", (long long)json_integer_value(value));
        append_text(text, digits);
        break;
    case JSON_REAL:
        append_real(text, json_real_value(value));
        break;
    case JSON_TRUE:
        append_text(text, "true");
        break;
    case JSON_FALSE:
        append_text(text, "false");
        break;
    case JSON_NULL:
        append_text(text, "null");
        break;
    }
}

char *tr__config_print(const json_t *value, int indent) {
    printed text = {.indent = indent};
    append_value(&text, value, 0);
    if (text.failed) {
        tr__free(text.data);
        return NULL;
    }
    return text.data;
}
