#include "data/sources/csv_columns.h"

#include "data/sources/number.h"

#include "base/memory.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

void tr__csv_columns_clear(tr_csv_columns *columns) {
    for (int64_t c = 0; columns->name && c < columns->count; c++) {
        tr__free(columns->name[c]);
    }
    tr__free(columns->name);
    tr__free(columns->first);
    tr__free(columns->place);
    *columns = (tr_csv_columns){0};
}

static tr_status no_memory(const char *path, tr_error *err) {
    return tr_fail(err, TR_MEMORY, "%s: no memory for its columns", path);
}

tr_status tr__csv_columns_copy(const tr_csv_columns *from, tr_csv_columns *to,
                               tr_error *err) {
    size_t count = (size_t)from->count;
    *to = (tr_csv_columns){.count = from->count, .label = from->label};
    to->first = tr__strdup(from->first);
    to->place = tr__calloc(count, sizeof *to->place);
    to->name = from->name ? tr__calloc(count, sizeof *to->name) : NULL;
    bool good = to->first && to->place && (to->name || !from->name);
    for (size_t c = 0; c < count && good && to->name; c++) {
        to->name[c] = tr__strdup(from->name[c]);
        good = to->name[c] != NULL;
    }
    if (good) {
        return TR_OK;
    }
    tr__csv_columns_clear(to);
    return no_memory(from->first, err);
}

static const char *field_text(const tr_csv_record *record, int64_t column) {
    return record->text + record->field[column];
}

bool tr__csv_is_header(const tr_data_options *options, const tr_csv_record *record) {
    bool empty = true;
    if (options->header != TR_HEADER_AUTO) {
        return options->header == TR_HEADER_YES;
    }
    for (int64_t c = 0; c < record->fields; c++) {
        double value;
        const char *text = field_text(record, c);
        if (tr__number_parse(text, &value) != TR_NUMBER_NONE) {
            return false;
        }
        empty = empty && text[strspn(text, " \t")] == '\0';
    }
    return !empty;
}

// The column of this name, -1: none.
static int64_t find(const tr_csv_columns *columns, const char *name) {
    for (int64_t c = 0; c < columns->count; c++) {
        if (strcmp(columns->name[c], name) == 0) {
            return c;
        }
    }
    return -1;
}

static void keep_order(tr_csv_columns *columns) {
    for (int64_t c = 0; c < columns->count; c++) {
        columns->place[c] = c;
    }
}

// ---- the first file

static tr_status take_names(const char *path, const tr_csv_record *header,
                            tr_csv_columns *columns, tr_error *err) {
    columns->name = tr__calloc((size_t)columns->count, sizeof *columns->name);
    for (int64_t c = 0; columns->name && c < columns->count; c++) {
        columns->name[c] = tr__strdup(field_text(header, c));
        if (!columns->name[c]) {
            return no_memory(path, err);
        }
    }
    return columns->name ? TR_OK : no_memory(path, err);
}

static tr_status unknown_label(const char *path, const tr_csv_columns *columns,
                               const char *wanted, tr_error *err) {
    const char *near = columns->name
                           ? tr__nearest(wanted, (const char *const *)columns->name,
                                         (size_t)columns->count)
                           : NULL;
    return tr_fail(err, TR_DATA,
                   "%s: no column '%s' (data.label_column)%s%s%s; it is a name of the "
                   "header or a number from 0 to %lld",
                   path, wanted, near ? ", did you mean '" : "", near ? near : "",
                   near ? "'?" : "", (long long)columns->count - 1);
}

// Are all columns features, where labels may be missing?
static bool lacks_label(const tr_data_options *options, int64_t columns) {
    return options->labels_optional && columns == options->features;
}

static tr_status choose_label(const tr_data_options *options, const char *path,
                              tr_csv_columns *columns, tr_error *err) {
    const char *wanted = options->label_column;
    char *end = NULL;
    columns->label = columns->count - !lacks_label(options, columns->count);
    if (!wanted || columns->label == columns->count) {
        return TR_OK;
    }
    int64_t named = columns->name ? find(columns, wanted) : -1;
    if (named >= 0) {
        columns->label = named;
        return TR_OK;
    }
    long long number = strtoll(wanted, &end, 10);
    if (end == wanted || *end != '\0' || number < 0 || number >= columns->count) {
        return unknown_label(path, columns, wanted, err);
    }
    columns->label = number;
    return TR_OK;
}

static tr_status begin_first(const tr_data_options *options, const char *path,
                             const tr_csv_record *record, tr_csv_columns *columns,
                             tr_error *err) {
    columns->count = record->fields;
    if (columns->count < 2 && !lacks_label(options, columns->count)) {
        return tr_fail(err, TR_DATA,
                       "%s:%lld: one column only; a row is features and a label, "
                       "separated by commas",
                       path, (long long)record->line);
    }
    columns->first = tr__strdup(path);
    columns->place = tr__calloc((size_t)columns->count, sizeof *columns->place);
    if (!columns->first || !columns->place) {
        return no_memory(path, err);
    }
    keep_order(columns);
    tr_status status = tr__csv_is_header(options, record)
                           ? take_names(path, record, columns, err)
                           : TR_OK;
    return status == TR_OK ? choose_label(options, path, columns, err) : status;
}

// ---- the others

static bool same_order(const tr_csv_columns *columns, const tr_csv_record *header) {
    bool same = true;
    for (int64_t c = 0; c < columns->count && same; c++) {
        same = strcmp(columns->name[c], field_text(header, c)) == 0;
    }
    return same;
}

// Where column `c` of the header goes. A name that a header has twice says no place.
static tr_status place_column(const char *path, const tr_csv_record *header, int64_t c,
                              tr_csv_columns *columns, tr_error *err) {
    const char *name = field_text(header, c);
    int64_t to = find(columns, name);
    if (to < 0) {
        return tr_fail(err, TR_DATA,
                       "%s:%lld:%lld: a column '%.40s', which %s has not; all files "
                       "need the same columns, in any order",
                       path, (long long)header->line, (long long)c + 1, name,
                       columns->first);
    }
    for (int64_t before = 0; before < c; before++) {
        if (columns->place[before] == to) {
            return tr_fail(err, TR_DATA,
                           "%s:%lld:%lld: a second column '%.40s'; in another order "
                           "than in %s columns need names of their own",
                           path, (long long)header->line, (long long)c + 1, name,
                           columns->first);
        }
    }
    columns->place[c] = to;
    return TR_OK;
}

static tr_status match_names(const char *path, const tr_csv_record *header,
                             tr_csv_columns *columns, tr_error *err) {
    bool same = same_order(columns, header);
    tr_status status = TR_OK;
    for (int64_t c = 0; c < columns->count && status == TR_OK && !same; c++) {
        status = place_column(path, header, c, columns, err);
    }
    return status;
}

static tr_status begin_other(const tr_data_options *options, const char *path,
                             const tr_csv_record *record, tr_csv_columns *columns,
                             tr_error *err) {
    bool header = tr__csv_is_header(options, record);
    keep_order(columns);
    if (record->fields != columns->count) {
        return tr_fail(err, TR_DATA, "%s:%lld: %lld columns where %s has %lld", path,
                       (long long)record->line, (long long)record->fields,
                       columns->first, (long long)columns->count);
    }
    if (header != (columns->name != NULL)) {
        return tr_fail(err, TR_DATA,
                       "%s:%lld: %s header, but %s has %s; give all files a header or "
                       "none, or say which by data.header",
                       path, (long long)record->line, header ? "a" : "no",
                       columns->first, header ? "none" : "one");
    }
    return header ? match_names(path, record, columns, err) : TR_OK;
}

tr_status tr__csv_columns_begin(const tr_data_options *options, const char *path,
                                const tr_csv_record *record, tr_csv_columns *columns,
                                tr_error *err) {
    return columns->count > 0 ? begin_other(options, path, record, columns, err)
                              : begin_first(options, path, record, columns, err);
}
