// Where a key stands in JSON text. jansson keeps no places, so the text, known to be
// valid, is walked once more; only when there is an error to report.
#include "config/internal.h"

#include <string.h>

typedef struct tr_cursor {
    const char *at, *end;
} tr_cursor;

static void skip_space(tr_cursor *cursor) {
    while (cursor->at < cursor->end && strchr(" \t\r\n", *cursor->at) && *cursor->at) {
        cursor->at++;
    }
}

// From an opening quote to past the closing one.
static void skip_string(tr_cursor *cursor) {
    for (cursor->at++; cursor->at < cursor->end && *cursor->at != '"'; cursor->at++) {
        if (*cursor->at == '\\') {
            cursor->at++;
        }
    }
    cursor->at++;
}

// Past one value of any kind.
static void skip_value(tr_cursor *cursor) {
    int depth = 0;
    while (cursor->at < cursor->end) {
        char c = *cursor->at;
        if (c == '"') {
            skip_string(cursor);
            continue;
        }
        if (depth == 0 && (c == ',' || c == '}' || c == ']')) {
            return;
        }
        depth += (c == '{' || c == '[') - (c == '}' || c == ']');
        cursor->at++;
    }
}

// From an opening brace to the value of the member `name`; NULL when there is none,
// else the place of its key.
static const char *enter_member(tr_cursor *cursor, const char *name, size_t length) {
    cursor->at++;
    while (cursor->at < cursor->end) {
        skip_space(cursor);
        if (cursor->at >= cursor->end || *cursor->at != '"') {
            return NULL;
        }
        const char *key = cursor->at;
        skip_string(cursor);
        bool same = (size_t)(cursor->at - key) == length + 2 &&
                    memcmp(key + 1, name, length) == 0;
        skip_space(cursor);
        cursor->at++; // the colon
        skip_space(cursor);
        if (same) {
            return key;
        }
        skip_value(cursor);
        cursor->at++; // the comma or the closing brace
    }
    return NULL;
}

int tr__config_line(const char *text, size_t bytes, const char *path) {
    tr_cursor cursor = {text, text + bytes};
    const char *found = NULL;
    skip_space(&cursor);
    while (cursor.at < cursor.end && *cursor.at == '{') {
        size_t length = strcspn(path, ".[");
        found = enter_member(&cursor, path, length);
        if (!found || path[length] != '.') {
            break;
        }
        path += length + 1;
    }
    if (!found) {
        return 0;
    }
    int line = 1;
    for (const char *c = text; c < found; c++) {
        line += *c == '\n';
    }
    return line;
}
