// Format "csv": a table of numbers with an integer label in one column, parsed once and
// held as f32 and i32.
#include "data/csv_reader.h"
#include "data/dataset.h"
#include "data/formats.h"
#include "data/number.h"
#include "data/paths.h"

#include "base/hash.h"
#include "base/memory.h"
#include "base/text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct csv_table {
    float *value;   // [rows, features]
    int32_t *label; // [rows]
    size_t rows, value_capacity, label_capacity;
    int64_t columns, features, label_column; // columns 0: not known yet
    int32_t label_max;
} csv_table;

typedef struct csv_parser {
    csv_table *table;
    const tr_data_options *options;
    const char *path;
} csv_parser;

static const char *field_text(const tr_csv_record *record, int64_t column) {
    return record->text + record->field[column];
}

// A name: starts with a letter (any byte of UTF-8 beyond ASCII counts) and is no "nan".
static bool is_name(const char *text) {
    double value;
    text += strspn(text, " \t");
    unsigned char first = (unsigned char)*text;
    return (isalpha(first) || first == '_' || first >= 0x80) &&
           tr__number_parse(text, &value) == TR_NUMBER_NONE;
}

static bool is_header(const tr_csv_record *record) {
    for (int64_t c = 0; c < record->fields; c++) {
        if (is_name(field_text(record, c))) {
            return true;
        }
    }
    return false;
}

static tr_status unknown_column(const csv_parser *parser, const tr_csv_record *header,
                                tr_error *err) {
    const char *wanted = parser->options->label_column, *near = NULL;
    for (int64_t c = 0; header && c < header->fields && !near; c++) {
        const char *name = field_text(header, c);
        near = tr__nearest(wanted, &name, 1);
    }
    return tr_fail(err, TR_DATA,
                   "%s: no column '%s' (data.label_column)%s%s%s; it is a name of the "
                   "header or a number from 0 to %lld",
                   parser->path, wanted, near ? ", did you mean '" : "",
                   near ? near : "", near ? "'?" : "",
                   (long long)parser->table->columns - 1);
}

// From the first record of the first file. header: NULL when there is none.
static tr_status choose_columns(csv_parser *parser, const tr_csv_record *first,
                                const tr_csv_record *header, tr_error *err) {
    csv_table *table = parser->table;
    const char *wanted = parser->options->label_column;
    table->columns = first->fields;
    table->features = first->fields - 1;
    if (table->features < 1) {
        return tr_fail(err, TR_DATA,
                       "%s:%lld: one column only; a row is features and a label, "
                       "separated by commas",
                       parser->path, (long long)first->line);
    }
    table->label_column = table->columns - 1;
    if (!wanted) {
        return TR_OK;
    }
    for (int64_t c = 0; header && c < header->fields; c++) {
        if (strcmp(field_text(header, c), wanted) == 0) {
            table->label_column = c;
            return TR_OK;
        }
    }
    char *end = NULL;
    long long number = strtoll(wanted, &end, 10);
    if (end == wanted || *end != '\0' || number < 0 || number >= table->columns) {
        return unknown_column(parser, header, err);
    }
    table->label_column = number;
    return TR_OK;
}

static tr_status bad_field(const csv_parser *parser, const tr_csv_record *record,
                           int64_t column, const char *why, tr_error *err) {
    const char *text = field_text(record, column);
    return tr_fail(err, TR_DATA, "%s:%lld:%lld: '%.40s' %s", parser->path,
                   (long long)record->line, (long long)column + 1, text, why);
}

static tr_status parse_label(const csv_parser *parser, const tr_csv_record *record,
                             double number, int32_t *label, tr_error *err) {
    int64_t column = parser->table->label_column, classes = parser->options->classes;
    double bound = classes > 0 ? (double)classes : 0x1p31 - 1;
    if (number != TR_NO_TARGET && !(number >= 0 && number < bound)) {
        char why[160];
        snprintf(why, sizeof why,
                 "is no label in [0, %.0f), nor %d for none; correct it, or give the "
                 "model more outputs",
                 bound, TR_NO_TARGET);
        return bad_field(parser, record, column, why, err);
    }
    *label = (int32_t)number;
    if ((double)*label != number) {
        return bad_field(parser, record, column,
                         "is no whole number, as a label must be; does "
                         "data.label_column name the right column?",
                         err);
    }
    return TR_OK;
}

// value: [features]
static tr_status parse_row(const csv_parser *parser, const tr_csv_record *record,
                           float *value, int32_t *label, tr_error *err) {
    tr_status status = TR_OK;
    for (int64_t c = 0; status == TR_OK && c < record->fields; c++) {
        double number = 0;
        tr_number_kind kind = tr__number_parse(field_text(record, c), &number);
        if (kind != TR_NUMBER_FINITE) {
            return bad_field(
                parser, record, c,
                kind == TR_NUMBER_NONE
                    ? "is not a number; correct it or leave the row out"
                    : "is not a finite f32 number; correct it or leave the "
                      "row out",
                err);
        }
        if (c == parser->table->label_column) {
            status = parse_label(parser, record, number, label, err);
        } else {
            *value++ = (float)number;
        }
    }
    return status;
}

static tr_status add_row(const csv_parser *parser, const tr_csv_record *record,
                         tr_error *err) {
    csv_table *table = parser->table;
    if (record->fields != table->columns) {
        return tr_fail(err, TR_DATA,
                       "%s:%lld: %lld columns where the first row has %lld",
                       parser->path, (long long)record->line, (long long)record->fields,
                       (long long)table->columns);
    }
    size_t width = (size_t)table->features * sizeof(float);
    if (!tr__grow((void **)&table->value, &table->value_capacity, table->rows + 1,
                  width) ||
        !tr__grow((void **)&table->label, &table->label_capacity, table->rows + 1,
                  sizeof *table->label)) {
        return tr_fail(err, TR_MEMORY, "%s:%lld: no memory for more rows", parser->path,
                       (long long)record->line);
    }
    size_t at = table->rows * (size_t)table->features;
    tr_status status =
        parse_row(parser, record, table->value + at, table->label + table->rows, err);
    if (status == TR_OK) {
        int32_t label = table->label[table->rows++];
        table->label_max = label > table->label_max ? label : table->label_max;
    }
    return status;
}

static tr_status parse_records(csv_parser *parser, tr_csv_reader *reader,
                               tr_error *err) {
    tr_csv_record record;
    bool end = false;
    tr_status status = tr__csv_reader_next(reader, &record, &end, err);
    if (status != TR_OK || end) {
        return status;
    }
    bool header = is_header(&record);
    if (parser->table->columns == 0) {
        status = choose_columns(parser, &record, header ? &record : NULL, err);
    }
    if (status == TR_OK && !header) {
        status = add_row(parser, &record, err);
    }
    while (status == TR_OK) {
        status = tr__csv_reader_next(reader, &record, &end, err);
        if (status != TR_OK || end) {
            break;
        }
        status = add_row(parser, &record, err);
    }
    return status;
}

static tr_status parse_file(csv_parser *parser, const char *path, tr_error *err) {
    tr_csv_reader *reader = NULL;
    tr_status status = tr__csv_reader_open(path, &reader, err);
    if (status == TR_OK) {
        parser->path = path;
        status = parse_records(parser, reader, err);
    }
    tr__csv_reader_close(reader);
    return status;
}

static void destroy_table(void *user) {
    csv_table *self = user;
    tr__free(self->value);
    tr__free(self->label);
    tr__free(self);
}

static tr_status read_rows(void *user, const int64_t *index, int64_t count, void *input,
                           void *target, tr_error *err) {
    const csv_table *self = user;
    float *row = input;      // [count, features]
    int32_t *label = target; // [count]
    (void)err;
    for (int64_t i = 0; i < count; i++) {
        memcpy(row + i * self->features, self->value + index[i] * self->features,
               (size_t)self->features * sizeof *row);
        label[i] = self->label[index[i]];
    }
    return TR_OK;
}

// Gives back what growing by doubling took too much.
static void trim(csv_table *table) {
    size_t width = (size_t)table->features * sizeof(float);
    float *value = tr__realloc(table->value, table->rows, width);
    int32_t *label = tr__realloc(table->label, table->rows, sizeof *label);
    if (value) {
        table->value = value;
        table->value_capacity = table->rows;
    }
    if (label) {
        table->label = label;
        table->label_capacity = table->rows;
    }
}

static tr_status wrap(csv_table *self, const tr_data_options *options, uint64_t hash,
                      tr_dataset **out, tr_error *err) {
    int64_t classes = options->classes > 0 ? options->classes : self->label_max + 1;
    char about[128];
    snprintf(about, sizeof about, "%zu rows of csv, %lld features, %lld classes",
             self->rows, (long long)self->features, (long long)classes);
    int64_t numbers[] = {(int64_t)self->rows, self->features, self->label_column};
    tr_dataset_source source = {
        .about = about,
        .samples = (int64_t)self->rows,
        .sample = tr__sample_of(options, self->features),
        .classes = classes,
        .hash = tr__hash_more(hash, numbers, sizeof numbers),
        .bytes =
            (int64_t)(self->value_capacity * (size_t)self->features * sizeof(float) +
                      self->label_capacity * sizeof(int32_t) + sizeof *self),
        .read = read_rows,
        .destroy = destroy_table,
        .user = self,
    };
    return tr__dataset_create(&source, out, err);
}

static tr_status parse_all(csv_parser *parser, const tr_file_list *list,
                           const tr_data_files *files, tr_error *err) {
    tr_status status = TR_OK;
    for (size_t i = 0; status == TR_OK && i < list->count; i++) {
        status = parse_file(parser, list->entry[i].path, err);
    }
    if (status == TR_OK && parser->table->rows == 0) {
        status = tr_fail(err, TR_DATA, "%s: no rows in %s; name files that hold data",
                         files->paths[0], files->paths_key);
    }
    if (status == TR_OK) {
        status = tr__features_check(parser->table->features, parser->options->features,
                                    parser->path, err);
    }
    return status;
}

tr_status tr__csv_open(const tr_data_options *options, const tr_data_files *files,
                       tr_dataset **out, tr_error *err) {
    tr_file_list list = {0};
    csv_table *self = tr__calloc(1, sizeof *self);
    tr_status status = self ? TR_OK : tr_fail(err, TR_MEMORY, "no memory to open csv");
    tr__file_list_leave_out(&list, files->leave_out);
    for (size_t i = 0; status == TR_OK && i < files->count; i++) {
        status = tr__file_list_add(&list, files->paths[i], err);
    }
    if (status == TR_OK) {
        csv_parser parser = {.table = self, .options = options};
        status = parse_all(&parser, &list, files, err);
    }
    if (status == TR_OK) {
        trim(self);
        uint64_t hash = tr__file_list_hash(&list, tr__hash_text("csv"));
        status = wrap(self, options, hash, out, err);
    } else if (self) {
        destroy_table(self);
    }
    tr__file_list_clear(&list);
    return status;
}
