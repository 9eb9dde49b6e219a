#include "data/encoder/labels.h"

#include "base/checked.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN = 8 }; // names in a message

const char *tr__label_field(const tr_data_options *options) {
    return options->fields.label ? options->fields.label : "label";
}

static int64_t find_name(const tr_data_options *o, const char *name) {
    for (int64_t i = 0; o->label_names && i < o->label_count; i++) {
        if (strcmp(o->label_names[i], name) == 0) {
            return i;
        }
    }
    return -1;
}

static tr_status fail_unknown(const tr_data_options *o, const char *name,
                              tr_error *err) {
    char all[256] = "";
    size_t used = 0, shown = (size_t)tr__min_i64(o->label_count, SHOWN);
    const char *nearest =
        o->label_names ? tr__nearest(name, o->label_names, (size_t)o->label_count)
                       : NULL;
    for (size_t i = 0; o->label_names && i < shown && used < sizeof all; i++) {
        used += (size_t)snprintf(all + used, sizeof all - used, "%s\"%.24s\"",
                                 i ? ", " : "", o->label_names[i]);
    }
    return tr_fail(err, TR_DATA,
                   "\"%.60s\": the label \"%.80s\" is none of the model's %lld (%s%s)"
                   "%s%.80s%s",
                   tr__label_field(o), name, (long long)o->label_count, all,
                   o->label_count > SHOWN ? ", ..." : "",
                   nearest ? "; did you mean \"" : "", nearest ? nearest : "",
                   nearest ? "\"?" : "");
}

// A class by its name or its number; -1: it is none.
static tr_status class_of(const tr_data_options *o, const json_t *value, int64_t *out,
                          tr_error *err) {
    char number[32];
    const char *name = json_string_value(value);
    if (!name && !json_is_integer(value) && !json_is_boolean(value)) {
        return tr_fail(err, TR_DATA,
                       "\"%.60s\" is neither the name of a label nor its number",
                       tr__label_field(o));
    }
    int64_t given =
        json_is_boolean(value) ? json_is_true(value) : json_integer_value(value);
    snprintf(number, sizeof number, "%lld", (long long)given);
    *out = find_name(o, name ? name : number);
    if (*out < 0 && !name && given >= 0 && given < o->label_count) {
        *out = given;
    }
    return *out >= 0 ? TR_OK : fail_unknown(o, name ? name : number, err);
}

// The names of the labels that a text has.
static tr_status read_set(const tr_data_options *o, const json_t *list, float *number,
                          tr_error *err) {
    tr_status status = TR_OK;
    memset(number, 0, (size_t)o->label_count * sizeof *number);
    for (size_t i = 0; i < json_array_size(list) && status == TR_OK; i++) {
        int64_t class = 0;
        status = class_of(o, json_array_get(list, i), &class, err);
        if (status == TR_OK) {
            number[class] = 1;
        }
    }
    return status;
}

static tr_status read_number(const tr_data_options *o, const json_t *value, float *to,
                             tr_error *err) {
    double number = json_number_value(value);
    bool share = o->label_kind == TR_LABELS_SET;
    if (!json_is_number(value) || (share && !(number >= 0 && number <= 1)) ||
        !isfinite((float)number)) {
        return tr_fail(err, TR_DATA, "\"%.60s\" has to be %s here", tr__label_field(o),
                       share ? "a list of names, or of numbers from 0 to 1, one for "
                               "each label"
                             : "a number, or one for each label");
    }
    *to = (float)number;
    return TR_OK;
}

// A number for each label; of one label, without a list.
static tr_status read_numbers(const tr_data_options *o, const json_t *value,
                              float *number, tr_error *err) {
    bool list = json_is_array(value);
    int64_t count = list ? (int64_t)json_array_size(value) : 1;
    tr_status status = TR_OK;
    if (count != o->label_count) {
        return tr_fail(err, TR_DATA, "\"%.60s\" has %lld number%s, and the model %lld",
                       tr__label_field(o), (long long)count, count == 1 ? "" : "s",
                       (long long)o->label_count);
    }
    for (int64_t i = 0; i < count && status == TR_OK; i++) {
        const json_t *one = list ? json_array_get(value, (size_t)i) : value;
        status = read_number(o, one, number + i, err);
    }
    return status;
}

static void set_missing(const tr_data_options *o, int32_t *class, float *number) {
    *class = TR_NO_TARGET;
    for (int64_t i = 0; o->label_kind != TR_LABELS_CLASS && i < o->label_count; i++) {
        number[i] = NAN;
    }
}

tr_status tr__label_parse(const tr_data_options *o, const json_t *record,
                          int32_t *class, float *number, tr_error *err) {
    const json_t *value = json_object_get(record, tr__label_field(o));
    set_missing(o, class, number);
    if (!value || json_is_null(value)) {
        return o->labels_optional
                   ? TR_OK
                   : tr_fail(err, TR_DATA,
                             "the record has no \"%.60s\", which the model learns; "
                             "data.fields.label says what records call it",
                             tr__label_field(o));
    }
    if (o->label_kind == TR_LABELS_CLASS) {
        int64_t found = -1;
        tr_status status = class_of(o, value, &found, err);
        *class = status == TR_OK ? (int32_t)found : TR_NO_TARGET;
        return status;
    }
    bool names = json_is_array(value) && (json_array_size(value) == 0 ||
                                          json_is_string(json_array_get(value, 0)));
    return o->label_kind == TR_LABELS_SET && names
               ? read_set(o, value, number, err)
               : read_numbers(o, value, number, err);
}
