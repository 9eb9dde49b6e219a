#include "base/text.h"

#include <tranche/status.h>
#include <tranche/types.h>

#include "base/checked.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { WORD_MAX = 64, FAR = 255 };

static int min3(int a, int b, int c) {
    int least = a < b ? a : b;
    return least < c ? least : c;
}

// Optimal string alignment distance, three rows at a time.
int tr__edit_distance(const char *a, const char *b) {
    size_t la = strlen(a), lb = strlen(b);
    if (la > WORD_MAX || lb > WORD_MAX) {
        return FAR;
    }
    int rows[3][WORD_MAX + 1];
    for (size_t j = 0; j <= lb; j++) {
        rows[0][j] = (int)j;
    }
    for (size_t i = 1; i <= la; i++) {
        int *now = rows[i % 3], *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        now[0] = (int)i;
        for (size_t j = 1; j <= lb; j++) {
            int change = last[j - 1] + (a[i - 1] != b[j - 1]);
            now[j] = min3(last[j] + 1, now[j - 1] + 1, change);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                now[j] = min3(now[j], before[j - 2] + 1, FAR);
            }
        }
    }
    return rows[la % 3][lb];
}

const char *tr__nearest(const char *word, const char *const *names, size_t count) {
    const char *best = NULL;
    // At most a third of the word may differ, and never all of it. (A distance of FAR
    // is not a distance.)
    int length = (int)tr__min_i64((int64_t)strlen(word), FAR - 1);
    int limit = 1 + length / 3;
    int least = limit < length ? limit + 1 : length;
    for (size_t i = 0; i < count; i++) {
        int distance = tr__edit_distance(word, names[i]);
        if (distance < least && distance < FAR) {
            least = distance;
            best = names[i];
        }
    }
    return best;
}

bool tr__parse_size(const char *text, int64_t *bytes) {
    static const struct {
        const char *name;
        double factor;
    } units[] = {{"", 1},         {"B", 1},       {"KB", 1e3},     {"MB", 1e6},
                 {"GB", 1e9},     {"TB", 1e12},   {"K", 0x1p10},   {"M", 0x1p20},
                 {"G", 0x1p30},   {"T", 0x1p40},  {"KiB", 0x1p10}, {"MiB", 0x1p20},
                 {"GiB", 0x1p30}, {"TiB", 0x1p40}};
    char *end = NULL;
    // strtod also reads signs, infinities and hexadecimal numbers.
    size_t number = strspn(text, "0123456789.eE+-");
    double value = strtod(text, &end);
    if (end == text || end > text + number || !(value >= 0) || *text == '-') {
        return false;
    }
    while (*end == ' ') {
        end++;
    }
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcasecmp(end, units[i].name) == 0) {
            double total = value * units[i].factor;
            if (!(total <= 0x1p62)) {
                return false;
            }
            *bytes = (int64_t)total;
            return true;
        }
    }
    return false;
}

void tr__print_size(char *dst, size_t size, int64_t bytes) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double value = (double)bytes;
    size_t unit = 0;
    // 1023.996 KiB would be printed as 1024.00.
    while (value >= (unit ? 1023.995 : 1024) &&
           unit + 1 < sizeof units / sizeof *units) {
        value /= 1024;
        unit++;
    }
    snprintf(dst, size, unit ? "%.2f %s" : "%.0f %s", value, units[unit]);
}

void tr__print_time(char *dst, size_t size, double seconds) {
    if (!(seconds < 1e9)) {
        snprintf(dst, size, "?");
        return;
    }
    int64_t s = (int64_t)(seconds + 0.5);
    if (s >= 3600) {
        snprintf(dst, size, "%" PRId64 "h%02d", s / 3600, (int)(s / 60 % 60));
    } else if (s >= 60) {
        snprintf(dst, size, "%" PRId64 "m%02ds", s / 60, (int)(s % 60));
    } else {
        snprintf(dst, size, "%" PRId64 "s", s);
    }
}

void tr__print_name(FILE *to, const char *name, int width) {
    size_t length = strlen(name);
    for (const char *c = name; *c; c++) {
        fputc(strchr("\n\r\t\v\f", *c) ? '?' : *c, to);
    }
    if (width > 0 && length < (size_t)width) {
        fprintf(to, "%*s", width - (int)length, "");
    }
}

static bool reads_back(char *dst, double value, int digits) {
    snprintf(dst, TR_DOUBLE_TEXT_MAX, "%.*g", digits, value);
    return strtod(dst, NULL) == value;
}

const char *tr__print_double(char *dst, double value) {
    enum { DIGITS_MAX = 17, MOST_TIMES = 15 }; // 17 are always enough
    // Where 15 digits are too few, fewer are, too: most results of a computation.
    int digits = reads_back(dst, value, MOST_TIMES) ? 1 : MOST_TIMES + 1;
    while (!reads_back(dst, value, digits) && digits < DIGITS_MAX) {
        digits++;
    }
    return dst;
}

void tr__print_escaped(const char *text, FILE *to) {
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '"' || *c == '\\') {
            fprintf(to, "\\%c", *c);
        } else if (*c < 0x20) {
            fprintf(to, "\\u%04x", *c);
        } else {
            fputc(*c, to);
        }
    }
}

const char *tr__plural(int64_t count) {
    return count == 1 ? "" : "s";
}

bool tr__ends_with(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

bool tr__glob_match(const char *pattern, const char *name) {
    return fnmatch(pattern, name, 0) == 0;
}

// ---- for callers

const char *tr_nearest(const char *word, const char *const *names, size_t count) {
    return word && names ? tr__nearest(word, names, count) : NULL;
}

const char *tr_size_words(int64_t bytes, char *dst, size_t size) {
    tr__print_size(dst, size, bytes);
    return dst;
}
