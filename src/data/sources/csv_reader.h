// Comma-separated text, record by record (RFC 4180: "quoted, with ""quotes""" and line
// ends inside, LF or CRLF). Knows nothing of numbers.
#ifndef TR_DATA_SOURCES_CSV_READER_H
#define TR_DATA_SOURCES_CSV_READER_H

#include <tranche/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tr_csv_reader tr_csv_reader;

// One record; valid until the next call.
typedef struct tr_csv_record {
    const char *text;    // fields, each ended by a zero byte
    const size_t *field; // [fields] where each begins in text
    int64_t fields;
    int64_t line; // on which it begins, from 1
} tr_csv_record;

tr_status tr__csv_reader_open(const char *path, tr_csv_reader **out, tr_error *err);
void tr__csv_reader_close(tr_csv_reader *reader); // NULL-safe

// The next record; *end is true when there is none. Empty lines are no records. A byte
// order mark at the start is passed over. TR_DATA names file:line.
tr_status tr__csv_reader_next(tr_csv_reader *reader, tr_csv_record *record, bool *end,
                              tr_error *err);

#endif
