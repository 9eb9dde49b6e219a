#include "data/chat/json_lines.h"

#include "base/checked.h"
#include "base/memory.h"

#include <jansson.h>
#include <string.h>

enum { BUFFER = 1 << 20, LINE_MAX_BYTES = 1 << 28 };

const char *tr__json_lines_path(const tr_json_lines *l) {
    return l->files->files.entry[l->file].path;
}

static int64_t file_end(const tr_json_lines *l) {
    return l->files->start[l->file + 1];
}

// More bytes of the file behind those that are there.
static tr_status fill(tr_json_lines *l, tr_error *err) {
    if (l->have > l->from) {
        memmove(l->buffer, l->buffer + l->from, l->have - l->from);
    }
    l->have -= l->from;
    l->from = 0;
    if (l->have >= LINE_MAX_BYTES) {
        return tr_fail(err, TR_DATA, "%s:%lld: a line of more than %d MiB",
                       tr__json_lines_path(l), (long long)l->line + 1,
                       LINE_MAX_BYTES >> 20);
    }
    if (l->have == l->capacity &&
        !tr__grow((void **)&l->buffer, &l->capacity,
                  l->capacity ? l->capacity + 1 : BUFFER, 1)) {
        return tr_fail(err, TR_MEMORY, "no memory to read %s", tr__json_lines_path(l));
    }
    int64_t count = tr__min_i64((int64_t)(l->capacity - l->have), file_end(l) - l->at);
    tr_status status =
        tr__joined_read(l->files, l->at, count, l->buffer + l->have, err);
    l->have += (size_t)count;
    l->at += count;
    return status;
}

// The next line of this file, without its end; *line NULL: there is no more.
static tr_status next_line(tr_json_lines *l, const char **line, size_t *bytes,
                           tr_error *err) {
    size_t seen = 0;
    *line = NULL;
    for (;;) {
        size_t here = l->have - l->from;
        const char *begin = here > 0 ? l->buffer + l->from : NULL;
        const char *end = here > seen ? memchr(begin + seen, '\n', here - seen) : NULL;
        if (end || (l->at == file_end(l) && here > 0)) {
            *line = begin;
            *bytes = end ? (size_t)(end - begin) : here;
            l->from += *bytes + (end != NULL);
            l->line++;
            return TR_OK;
        }
        if (l->at == file_end(l)) {
            return TR_OK;
        }
        seen = here;
        tr_status status = fill(l, err);
        if (status != TR_OK) {
            return status;
        }
    }
}

static bool is_blank(const char *line, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        if (!strchr(" \t\r", line[i]) || line[i] == '\0') {
            return false;
        }
    }
    return true;
}

static tr_status parse(const tr_json_lines *l, const char *line, size_t bytes,
                       json_t **record, tr_error *err) {
    json_error_t problem;
    *record =
        json_loadb(line, bytes, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &problem);
    if (!*record) {
        return tr_fail(err, TR_DATA, "%s:%lld: column %d: not valid JSON: %s",
                       tr__json_lines_path(l), (long long)l->line, problem.column,
                       problem.text);
    }
    if (!json_is_object(*record)) {
        json_decref(*record);
        *record = NULL;
        return tr_fail(err, TR_DATA,
                       "%s:%lld: each line is one JSON object, {...}, and this one is "
                       "not",
                       tr__json_lines_path(l), (long long)l->line);
    }
    return TR_OK;
}

static void pass_mark(const tr_json_lines *l, const char **line, size_t *bytes) {
    static const char mark[] = "\xef\xbb\xbf";
    if (l->line == 1 && *bytes >= 3 && memcmp(*line, mark, 3) == 0) {
        *line += 3;
        *bytes -= 3;
    }
}

tr_status tr__json_lines_next(tr_json_lines *l, json_t **record, tr_error *err) {
    *record = NULL;
    while (l->file < l->files->files.count) {
        const char *line = NULL;
        size_t bytes = 0;
        tr_status status = next_line(l, &line, &bytes, err);
        if (status != TR_OK) {
            return status;
        }
        if (!line && l->file + 1 == l->files->files.count) {
            return TR_OK;
        }
        if (!line) {
            l->file++;
            l->line = 0;
            continue;
        }
        pass_mark(l, &line, &bytes);
        if (!is_blank(line, bytes)) {
            return parse(l, line, bytes, record, err);
        }
    }
    return TR_OK;
}

void tr__json_lines_close(tr_json_lines *l) {
    tr__free(l->buffer);
    l->buffer = NULL;
}
