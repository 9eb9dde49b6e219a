// Which labels records have.
#include "data/chat/json_lines.h"
#include "data/encoder/labels.h"
#include "data/text/text_files.h"

#include "base/checked.h"
#include "base/memory.h"

#include <string.h>

enum { NAMES_MAX = 1 << 20 };

// What labels were seen so far.
typedef struct seen {
    const tr_data_options *options;
    char **names;
    size_t room;
    int64_t count;   // of names
    int64_t largest; // whole number, -1: none
    int64_t length;  // of lists of numbers, -1: none
    bool strings, integers, numbers, lists;
    bool beyond; // a number in a list that is no share
} seen;

static tr_status fail_mixed(const seen *s, tr_error *err) {
    return tr_fail(err, TR_DATA,
                   "\"%.60s\" is of another kind than in the records before: a name, a "
                   "whole number, a number, or a list of names or of numbers",
                   tr__label_field(s->options));
}

// Where the name is, or would be.
static int64_t place_of(const seen *s, const char *name) {
    int64_t low = 0, high = s->count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (strcmp(s->names[middle], name) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static tr_status add_name(seen *s, const char *name, tr_error *err) {
    int64_t at = place_of(s, name);
    s->strings = true;
    if (at < s->count && strcmp(s->names[at], name) == 0) {
        return TR_OK;
    }
    if (s->count == NAMES_MAX) {
        return tr_fail(err, TR_DATA, "more than %d labels", NAMES_MAX);
    }
    char *copy = tr__strdup(name);
    if (!copy || !tr__grow((void **)&s->names, &s->room, (size_t)s->count + 1,
                           sizeof *s->names)) {
        tr__free(copy);
        return tr_fail(err, TR_MEMORY, "no memory for the names of labels");
    }
    memmove(s->names + at + 1, s->names + at,
            (size_t)(s->count - at) * sizeof *s->names);
    s->names[at] = copy;
    s->count++;
    return TR_OK;
}

static tr_status add_whole(seen *s, int64_t number, tr_error *err) {
    s->integers = true;
    s->largest = tr__max_i64(s->largest, number);
    if (number < 0) {
        s->numbers = true; // no class has a number below 0
    }
    return number < INT32_MAX
               ? TR_OK
               : tr_fail(err, TR_DATA, "\"%.60s\" is %lld: too large for a class",
                         tr__label_field(s->options), (long long)number);
}

static tr_status add_list(seen *s, const json_t *list, tr_error *err) {
    tr_status status = TR_OK;
    s->lists = true;
    for (size_t i = 0; i < json_array_size(list) && status == TR_OK; i++) {
        const json_t *one = json_array_get(list, i);
        double number = json_number_value(one);
        if (json_is_string(one)) {
            status = add_name(s, json_string_value(one), err);
        } else if (json_is_number(one)) {
            s->numbers = true;
            s->beyond = s->beyond || !(number >= 0 && number <= 1);
        } else {
            status = fail_mixed(s, err);
        }
    }
    int64_t length = (int64_t)json_array_size(list);
    if (status == TR_OK && s->numbers) {
        status = s->length < 0 || s->length == length ? TR_OK : fail_mixed(s, err);
        s->length = length;
    }
    return status;
}

static tr_status add(seen *s, const json_t *value, tr_error *err) {
    bool list = json_is_array(value);
    bool any = s->strings || s->integers || s->numbers || s->lists;
    tr_status status = TR_OK;
    if (any && list != s->lists) {
        return fail_mixed(s, err);
    }
    if (list) {
        status = add_list(s, value, err);
    } else if (json_is_string(value)) {
        status = add_name(s, json_string_value(value), err);
    } else if (json_is_integer(value)) {
        status = add_whole(s, json_integer_value(value), err);
    } else if (json_is_boolean(value)) {
        status = add_whole(s, json_is_true(value), err);
    } else if (json_is_real(value)) {
        s->numbers = true;
    } else {
        status = fail_mixed(s, err);
    }
    bool mixed = s->strings && (s->integers || s->numbers);
    return status == TR_OK && mixed ? fail_mixed(s, err) : status;
}

static tr_status read_labels(seen *s, const tr_joined *files, tr_error *err) {
    tr_json_lines lines = {.files = files};
    json_t *record = NULL;
    tr_status status = TR_OK;
    do {
        tr_error inner = {0};
        status = tr__json_lines_next(&lines, &record, err);
        const json_t *value = json_object_get(record, tr__label_field(s->options));
        if (status == TR_OK && value && !json_is_null(value)) {
            status = add(s, value, &inner);
            if (status != TR_OK) {
                tr_fail(err, status, "%s:%lld: %s", tr__json_lines_path(&lines),
                        (long long)lines.line, inner.message);
            }
        }
        json_decref(record);
    } while (status == TR_OK && record);
    tr__json_lines_close(&lines);
    return status;
}

// What all that was seen comes to.
static tr_status conclude(seen *s, tr_label_kind kind, tr_label_survey *out,
                          tr_error *err) {
    bool lists = s->lists, numbers = s->numbers || kind == TR_LABELS_VALUE;
    const char *path = s->options->paths[0];
    if (!s->strings && !s->integers && !s->numbers) {
        return tr_fail(err, TR_DATA,
                       "%s: no record has a \"%.60s\", which task \"classification\" "
                       "learns; data.fields.label says what records call it",
                       path, tr__label_field(s->options));
    }
    out->kind = lists && (s->strings || !s->beyond) ? TR_LABELS_SET
                : numbers                           ? TR_LABELS_VALUE
                                                    : TR_LABELS_CLASS;
    out->kind = kind != TR_LABELS_NONE ? kind : out->kind;
    out->count = s->strings ? s->count
                 : lists    ? s->length
                 : numbers  ? 1
                            : s->largest + 1;
    if (out->kind == TR_LABELS_CLASS && out->count < 2) {
        return tr_fail(err, TR_DATA,
                       "%s: all records have one label: there is nothing to tell apart",
                       path);
    }
    if (s->strings) {
        out->names = s->names;
        s->names = NULL;
    }
    return TR_OK;
}

void tr__label_survey_release(tr_label_survey *survey) {
    for (int64_t i = 0; survey->names && i < survey->count; i++) {
        tr__free(survey->names[i]);
    }
    tr__free(survey->names);
    *survey = (tr_label_survey){0};
}

tr_status tr__label_survey(const tr_data_options *options, tr_label_kind kind,
                           tr_label_survey *out, tr_error *err) {
    seen s = {.options = options, .largest = -1, .length = -1};
    const tr_data_files paths = {.paths = options->paths,
                                 .count = options->path_count,
                                 .paths_key = "data.train",
                                 .leave_out = options->leave_out,
                                 .text = true};
    tr_data_options quiet = *options;
    tr_joined files = {0};
    quiet.say = NULL; // it is told when the data are opened
    *out = (tr_label_survey){0};
    tr_status status = tr__text_files_open(&quiet, &paths, &files, err);
    if (status == TR_OK) {
        status = read_labels(&s, &files, err);
        tr__joined_close(&files);
    }
    status = status == TR_OK ? conclude(&s, kind, out, err) : status;
    tr_label_survey rest = {.count = s.count, .names = s.names};
    tr__label_survey_release(&rest);
    return status;
}
