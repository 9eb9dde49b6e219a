// Format "csv": a table of numbers with an integer label in one column, parsed once and
// held as f32 and i32.
#include "data/sources/content.h"
#include "data/sources/csv_columns.h"
#include "data/sources/csv_reader.h"
#include "data/sources/dataset.h"
#include "data/sources/formats.h"
#include "data/sources/number.h"
#include "data/sources/paths.h"

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
    int64_t features;
    tr_csv_columns columns;
    int32_t label_max;
} csv_table;

typedef struct csv_parser {
    csv_table *table;
    const tr_data_options *options;
    const char *path;
    int64_t first_line; // of the file
} csv_parser;

static const char *field_text(const tr_csv_record *record, int64_t column) {
    return record->text + record->field[column];
}

static tr_status bad_field(const csv_parser *parser, const tr_csv_record *record,
                           int64_t column, const char *why, tr_error *err) {
    const char *text = field_text(record, column);
    return tr_fail(err, TR_DATA, "%s:%lld:%lld: '%.40s' %s", parser->path,
                   (long long)record->line, (long long)column + 1, text, why);
}

static tr_status parse_label(const csv_parser *parser, const tr_csv_record *record,
                             int64_t column, double number, int32_t *label,
                             tr_error *err) {
    int64_t classes = parser->options->classes;
    double bound = classes > 0 ? (double)classes : 0x1p31 - 1;
    if (number != TR_NO_TARGET && !(number >= 0 && number < bound)) {
        char why[160];
        snprintf(why, sizeof why,
                 "is no label in [0, %.0f), nor %d for none; correct it, or raise "
                 "data.classes and the model's outputs",
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

static const char *why_none(const csv_parser *parser, const tr_csv_record *record,
                            tr_number_kind kind) {
    bool open = parser->options->header == TR_HEADER_AUTO;
    if (kind != TR_NUMBER_NONE) {
        return "is not a finite f32 number; correct it or leave the row out";
    }
    return open && record->line == parser->first_line
               ? "is not a number; correct it or leave the row out, or, if this line "
                 "is "
                 "a header, set data.header to true"
               : "is not a number; correct it or leave the row out";
}

// value: [features]
static tr_status parse_row(const csv_parser *parser, const tr_csv_record *record,
                           float *value, int32_t *label, tr_error *err) {
    const tr_csv_columns *columns = &parser->table->columns;
    tr_status status = TR_OK;
    *label = TR_NO_TARGET;
    for (int64_t c = 0; status == TR_OK && c < record->fields; c++) {
        double number = 0;
        tr_number_kind kind = tr__number_parse(field_text(record, c), &number);
        if (kind != TR_NUMBER_FINITE) {
            return bad_field(parser, record, c, why_none(parser, record, kind), err);
        }
        int64_t place = columns->place[c];
        if (place == columns->label) {
            status = parse_label(parser, record, c, number, label, err);
        } else {
            value[place - (place > columns->label)] = (float)number;
        }
    }
    return status;
}

static tr_status add_row(const csv_parser *parser, const tr_csv_record *record,
                         tr_error *err) {
    csv_table *table = parser->table;
    if (record->fields != table->columns.count) {
        return tr_fail(err, TR_DATA,
                       "%s:%lld: %lld columns where the first row has %lld",
                       parser->path, (long long)record->line, (long long)record->fields,
                       (long long)table->columns.count);
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
    csv_table *table = parser->table;
    parser->first_line = record.line;
    status = tr__csv_columns_begin(parser->options, parser->path, &record,
                                   &table->columns, err);
    table->features =
        table->columns.count - (table->columns.label < table->columns.count);
    if (status == TR_OK && !tr__csv_is_header(parser->options, &record)) {
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
    tr__csv_columns_clear(&self->columns);
    tr__free(self);
}

static tr_status read_rows(void *user, const int64_t *index, int64_t count,
                           void *const *rows, tr_error *err) {
    const csv_table *self = user;
    float *row = rows[0];     // [count, features]
    int32_t *label = rows[1]; // [count]
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

// Bytes of memory, but for the few of the columns' names.
static int64_t table_bytes(const csv_table *self) {
    return (int64_t)(self->value_capacity * (size_t)self->features * sizeof(float) +
                     self->label_capacity * sizeof(int32_t) + sizeof *self);
}

// Hands `self` over to the dataset. list: the files.
static tr_status wrap(csv_table *self, const tr_data_options *options,
                      const tr_file_list *list, tr_dataset **out, tr_error *err) {
    int64_t classes = options->classes > 0 ? options->classes : self->label_max + 1;
    char about[128];
    snprintf(about, sizeof about, "%zu row%s of csv, %lld feature%s, %lld classes",
             self->rows, tr__plural((int64_t)self->rows), (long long)self->features,
             tr__plural(self->features), (long long)classes);
    int64_t numbers[] = {(int64_t)self->rows, self->features, self->columns.label};
    uint64_t content = tr__hash_text("csv");
    uint64_t names = tr__file_list_names(list, content);
    tr_status status =
        options->sizes_only ? TR_OK : tr__content_hash(list, &content, err);
    if (status != TR_OK) {
        destroy_table(self);
        return status;
    }
    tr_dataset_source source = {
        .about = about,
        .samples = (int64_t)self->rows,
        .tensors = tr__tensors_of(options, self->features),
        .classes = classes,
        .hash = tr__hash_more(content, numbers, sizeof numbers),
        .bytes = table_bytes(self),
        .read = read_rows,
        .destroy = destroy_table,
        .user = self,
    };
    status = tr__dataset_create(&source, out, err);
    if (status == TR_OK) {
        tr__dataset_names(*out, tr__hash_more(names, numbers, sizeof numbers));
    }
    return status;
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
        status = tr__features_check(parser->table->features, parser->options,
                                    parser->path, err);
    }
    return status;
}

tr_status tr__csv_open(const tr_data_options *options, const tr_data_files *files,
                       tr_dataset **out, tr_error *err) {
    tr_file_list list = {0};
    csv_table *self = tr__calloc(1, sizeof *self);
    tr_status status = self ? TR_OK : tr_fail(err, TR_MEMORY, "no memory to open csv");
    if (status == TR_OK && files->like) {
        const csv_table *like = tr__dataset_user(files->like);
        status = tr__csv_columns_copy(&like->columns, &self->columns, err);
    }
    if (status == TR_OK) {
        status = tr__data_files_list(options, files, &list, err);
    }
    if (status == TR_OK) {
        csv_parser parser = {.table = self, .options = options};
        status = parse_all(&parser, &list, files, err);
    }
    if (status == TR_OK) {
        trim(self);
        status = wrap(self, options, &list, out, err);
    } else if (self) {
        destroy_table(self);
    }
    tr__file_list_clear(&list);
    return status;
}
