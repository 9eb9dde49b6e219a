// What a run file may have beside JSON: comments (//, #, /* */) and commas behind the
// last element. Each is replaced by spaces, so that lines and columns stay.
#include "config/internal.h"

#include <string.h>

typedef struct cursor {
    char *at, *end;
} cursor;

static bool begins(const cursor *c, const char *word) {
    size_t length = strlen(word);
    return (size_t)(c->end - c->at) >= length && memcmp(c->at, word, length) == 0;
}

// From an opening quote to past the closing one, or the end of the line: what has no
// end is for the parser to tell.
static void skip_string(cursor *c) {
    for (c->at++; c->at < c->end && *c->at != '"' && *c->at != '\n'; c->at++) {
        c->at += *c->at == '\\' && c->at + 1 < c->end;
    }
    c->at += c->at < c->end;
}

static void blank_line(cursor *c) {
    for (; c->at < c->end && *c->at != '\n'; c->at++) {
        *c->at = ' ';
    }
}

// false: it has no end.
static bool blank_block(cursor *c) {
    bool closed = false;
    for (int written = 0; c->at < c->end && !closed; written++) {
        closed = written >= 2 && begins(c, "*/");
        *c->at = *c->at == '\n' || *c->at == '\r' ? *c->at : ' ';
        c->at++;
    }
    if (closed) {
        *c->at++ = ' ';
    }
    return closed;
}

static int line_of(const char *text, const char *at) {
    int line = 1;
    for (; text < at; text++) {
        line += *text == '\n';
    }
    return line;
}

// Past a character or text of JSON. *comma: behind an element, with nothing else behind
// it so far; NULL: there is none.
static void take(cursor *c, char *last, char **comma) {
    char now = *c->at;
    if ((now == '}' || now == ']') && *comma) {
        **comma = ' ';
    }
    *comma = now == ',' && !strchr("{[,:", *last) ? c->at : NULL;
    *last = now;
    if (now == '"') {
        skip_string(c);
    } else {
        c->at++;
    }
}

tr_status tr__config_plain(const char *name, char *text, size_t bytes, tr_error *err) {
    cursor c = {text, text + bytes};
    char last = '{', *comma = NULL;
    while (c.at < c.end) {
        const char *begin = c.at;
        bool closed = true;
        if (begins(&c, "//") || *c.at == '#') {
            blank_line(&c);
        } else if (begins(&c, "/*")) {
            closed = blank_block(&c);
        } else if (*c.at && strchr(" \t\r\n", *c.at)) {
            c.at++;
        } else {
            take(&c, &last, &comma);
        }
        if (!closed) {
            return tr_fail(
                err, TR_USAGE,
                "%s:%d: the comment that begins here has no end: close it by "
                "*/",
                name, line_of(text, begin));
        }
    }
    return TR_OK;
}
