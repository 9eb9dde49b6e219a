// The columns of csv files: their names, matched over all files, and which is the
// label's.
//
// The first file's header gives the names and their order. A later file may have the
// same names in another order; anything else is refused.
#ifndef TR_DATA_SOURCES_CSV_COLUMNS_H
#define TR_DATA_SOURCES_CSV_COLUMNS_H

#include "data/sources/csv_reader.h"

#include <tranche/data.h>

typedef struct tr_csv_columns { // zero-initialized: not known yet
    int64_t count, label;       // label == count: there is none
    char **name;                // [count]; NULL: the files have no header
    char *first;                // the file that they were taken from, for messages
    int64_t *place; // [count] of the file at work: where each of its columns goes
} tr_csv_columns;

void tr__csv_columns_clear(tr_csv_columns *columns);
// Takes over what `from`, that of the training data, says.
tr_status tr__csv_columns_copy(const tr_csv_columns *from, tr_csv_columns *to,
                               tr_error *err);

// Is a file's first record a header? With `data.header` left open: a row in which no
// field is a number, and not all are empty.
bool tr__csv_is_header(const tr_data_options *options, const tr_csv_record *record);

// From the first record of each file, in turn. TR_DATA names file and line.
tr_status tr__csv_columns_begin(const tr_data_options *options, const char *path,
                                const tr_csv_record *record, tr_csv_columns *columns,
                                tr_error *err);

#endif
