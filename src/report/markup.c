#include "report/markup.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>

// Bytes behind the first of a character of UTF-8; -1: it begins none.
static int bytes_behind(unsigned char first) {
    return first < 0x80                    ? 0
           : first >= 0xc2 && first < 0xe0 ? 1
           : first >= 0xe0 && first < 0xf0 ? 2
           : first >= 0xf0 && first < 0xf5 ? 3
                                           : -1;
}

// Bytes of the character that begins here; 0: none that may stand in a text.
static int character_bytes(const unsigned char *c) {
    int more = bytes_behind(*c), good = 0;
    while (good < more && (c[good + 1] & 0xc0) == 0x80) {
        good++;
    }
    bool plain = more == good && !(*c == 0xed && c[1] >= 0xa0) &&
                 !(*c == 0xef && c[1] == 0xbf && c[2] >= 0xbe) &&
                 !(*c == 0xe0 && c[1] < 0xa0) && !(*c == 0xf0 && c[1] < 0x90) &&
                 !(*c == 0xf4 && c[1] >= 0x90) &&
                 !(*c < 0x20 && *c != '\n' && *c != '\t') && *c != 0x7f;
    return plain ? more + 1 : 0;
}

void markup_text(const char *text, FILE *to) {
    for (const unsigned char *c = (const unsigned char *)text; *c;) {
        int bytes = character_bytes(c);
        if (*c == '&' || *c == '<' || *c == '>' || *c == '"' || *c == '\'') {
            fprintf(to, "&#%d;", *c);
        } else if (bytes > 0) {
            fwrite(c, 1, (size_t)bytes, to);
        } else {
            fputc('?', to);
        }
        c += bytes > 0 ? bytes : 1;
    }
}

void markup_json(const char *text, FILE *to) {
    fputc('"', to);
    for (const unsigned char *c = (const unsigned char *)text; *c;) {
        int bytes = character_bytes(c);
        if (*c < 0x20 || *c == '"' || *c == '\\' || *c == '<' || *c == '>' ||
            *c == '&') {
            fprintf(to, "\\u%04x", *c);
        } else if (bytes > 0) {
            fwrite(c, 1, (size_t)bytes, to);
        } else {
            fputc('?', to);
        }
        c += bytes > 0 ? bytes : 1;
    }
    fputc('"', to);
}

void markup_number(double value, int digits, FILE *to) {
    if (isfinite(value)) {
        fprintf(to, "%.*g", digits, value);
    } else {
        fputs("null", to);
    }
}

const char *markup_size(int64_t bytes, char text[MARKUP_SIZE_TEXT]) {
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
    double value = (double)bytes / 1024;
    size_t unit = 0;
    while (value >= 1024 && unit + 1 < sizeof units / sizeof *units) {
        value /= 1024;
        unit++;
    }
    if (bytes < 1024) {
        snprintf(text, MARKUP_SIZE_TEXT, "%" PRId64 " B", bytes);
    } else {
        snprintf(text, MARKUP_SIZE_TEXT, "%.2f %s", value, units[unit]);
    }
    return text;
}
