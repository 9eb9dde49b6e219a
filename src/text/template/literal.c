#include "text/template/literal.h"

#include "text/template/characters.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// ---- texts

typedef struct escape {
    tr_jinja_string raw;
    size_t at; // behind the backslash
    char *to;
    size_t count;
    const char *problem;
} escape;

static int digit(char c, int base) {
    int value = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : base;
    return value < base ? value : -1;
}

// A character by up to `most` digits, at least `least` of them.
static void by_number(escape *e, int base, int least, int most) {
    uint32_t c = 0;
    int digits = 0;
    while (digits < most && e->at < e->raw.count &&
           digit(e->raw.bytes[e->at], base) >= 0) {
        c = c * (uint32_t)base + (uint32_t)digit(e->raw.bytes[e->at++], base);
        digits++;
    }
    if (digits < least || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) {
        e->problem = "an escape in a text names no character";
        return;
    }
    e->count += tr__jinja_character_write(c, e->to + e->count);
}

static void put_escape(escape *e) {
    static const char names[] = "abfnrtv\\'\"", bytes[] = "\a\b\f\n\r\t\v\\'\"";
    char c = e->raw.bytes[e->at++];
    const char *known = c ? strchr(names, c) : NULL;
    if (known) {
        e->to[e->count++] = bytes[known - names];
    } else if (c >= '0' && c <= '7') {
        e->at--;
        by_number(e, 8, 1, 3);
    } else if (c == 'x') {
        by_number(e, 16, 2, 2);
    } else if (c == 'u') {
        by_number(e, 16, 4, 4);
    } else if (c == 'U') {
        by_number(e, 16, 8, 8);
    } else if (c == 'N') {
        e->problem = "the escape \\N{...} in a text is not supported";
    } else if (c != '\n') { // an escaped line end is nothing
        e->to[e->count++] = '\\';
        e->to[e->count++] = c;
    }
}

// No escape is shorter than what it stands for, but for octal ones (\7), which are as
// long as two bytes of UTF-8.
bool tr__jinja_unescape(tr_jinja_arena *arena, tr_jinja_string raw,
                        tr_jinja_string *text, const char **problem) {
    escape e = {.raw = raw, .to = tr__jinja_arena_take(arena, raw.count + 4, 1)};
    if (!e.to) {
        return false;
    }
    while (e.at < raw.count && !e.problem) {
        char c = raw.bytes[e.at++];
        if (c == '\\' && e.at < raw.count) {
            put_escape(&e);
        } else {
            e.to[e.count++] = c;
        }
    }
    *text = (tr_jinja_string){e.to, e.count};
    *problem = e.problem;
    return !e.problem;
}

// ---- numbers

enum { NUMBER_MAX = 64 };

static bool is_digit(tr_jinja_string text, size_t at) {
    return at < text.count && text.bytes[at] >= '0' && text.bytes[at] <= '9';
}

static size_t digits(tr_jinja_string text, size_t at) {
    while (is_digit(text, at)) {
        at++;
    }
    return at;
}

// Behind a fraction and an exponent, where there are such.
static size_t find_end(tr_jinja_string text, size_t at) {
    if (at < text.count && text.bytes[at] == '.' && is_digit(text, at + 1)) {
        at = digits(text, at + 1);
    }
    if (at < text.count && (text.bytes[at] == 'e' || text.bytes[at] == 'E')) {
        size_t sign = at + 1 < text.count &&
                      (text.bytes[at + 1] == '+' || text.bytes[at + 1] == '-');
        if (is_digit(text, at + 1 + sign)) {
            at = digits(text, at + 1 + sign);
        }
    }
    return at;
}

size_t tr__jinja_number(tr_jinja_string text, tr_jinja_value *number) {
    size_t whole = digits(text, 0), end = find_end(text, whole);
    char copy[NUMBER_MAX];
    bool letter =
        end < text.count && (text.bytes[end] == '_' || text.bytes[end] == 'x' ||
                             text.bytes[end] == 'o' || text.bytes[end] == 'b');
    if (end >= sizeof copy || letter ||
        (end == whole && whole > 1 && text.bytes[0] == '0')) {
        return 0;
    }
    memcpy(copy, text.bytes, end);
    copy[end] = '\0';
    errno = 0;
    *number = end > whole ? tr__jinja_real(strtod(copy, NULL))
                          : tr__jinja_integer(strtoll(copy, NULL, 10));
    return errno == ERANGE ? 0 : end;
}
