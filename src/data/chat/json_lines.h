// Files with one JSON object a line. Blank lines are passed over.
#ifndef TR_DATA_CHAT_JSON_LINES_H
#define TR_DATA_CHAT_JSON_LINES_H

#include "data/sources/joined.h"

struct json_t; // jansson's

typedef struct tr_json_lines { // a walk; zero-initialized but for `files`
    const tr_joined *files;    // entries are bytes
    size_t file;               // of the line that was read last
    int64_t line, at; // its number in that file, from 1; bytes read of all files
    char *buffer;
    size_t from, have, capacity;
} tr_json_lines;

// The next record, which the caller releases; NULL: there is no more. TR_DATA: a line
// that is no JSON object, as FILE:LINE; TR_IO; TR_MEMORY.
tr_status tr__json_lines_next(tr_json_lines *lines, struct json_t **record,
                              tr_error *err);
void tr__json_lines_close(tr_json_lines *lines);
// The path of the file of the record that was read last.
const char *tr__json_lines_path(const tr_json_lines *lines);

#endif
