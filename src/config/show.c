// The words of messages: what a value is, what is wanted.
#include "config/internal.h"

#include "base/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN_MAX = 120 }; // characters of a user's text in a message

__attribute__((format(printf, 3, 4))) static void add(char *dst, size_t size,
                                                      const char *format, ...) {
    size_t length = strlen(dst);
    va_list args;
    va_start(args, format);
    vsnprintf(dst + length, size - length, format, args);
    va_end(args);
}

void tr__config_show_path(const char *path, char *dst, size_t size) {
    size_t length = strlen(path), room = size - 1 < SHOWN_MAX ? size - 1 : SHOWN_MAX;
    bool cut = length > room;
    length = cut ? room : length;
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)path[i];
        dst[i] = (char)(c < 0x20 || c == 0x7f ? '?' : c);
    }
    dst[length] = '\0';
    if (cut && length >= 3) {
        memcpy(dst + length - 3, "...", 3);
    }
}

void tr__config_show_value(const json_t *value, char *dst, size_t size) {
    char *text = tr__config_print(value, 0);
    tr__config_show_path(text ? text : "?", dst, size);
    tr__free(text);
}

static void add_range(const tr_key *key, bool size_of, char *dst, size_t size) {
    bool bounded = key->min != 0 || key->max != 0;
    if (size_of && !bounded) {
        add(dst, size, " of at least 0");
    } else if (!bounded) {
        return;
    } else if (key->max >= 0x1p53) {
        add(dst, size, " of at least %.15g", key->min);
    } else if (key->max_excluded) {
        add(dst, size, " of at least %.15g and below %.15g", key->min, key->max);
    } else {
        add(dst, size, " from %.15g to %.15g", key->min, key->max);
    }
}

static void add_choices(const tr_key *key, char *dst, size_t size) {
    add(dst, size, "one of ");
    for (const char *const *choice = key->choices; *choice; choice++) {
        add(dst, size, "%s\"%s\"", choice == key->choices ? "" : ", ", *choice);
        if (key->numbered && !choice[1]) {
            add(dst, size, " (or \"%s:1\", by its number)", *choice);
        }
    }
}

// What of `types` is accepted.
static void add_types(const tr_key *key, unsigned types, char *dst, size_t size) {
    static const struct {
        unsigned type;
        const char *words;
        bool ranged;
    } names[] = {{TR_KEY_BOOL, "true or false", false},
                 {TR_KEY_INT, "an integer", true},
                 {TR_KEY_NUMBER, "a number", true},
                 {TR_KEY_TEXT, "a text", false},
                 {TR_KEY_SIZE, "a size (bytes, or \"6GiB\")", true},
                 {TR_KEY_LIST, "a list", false},
                 {TR_KEY_OBJECT, "an object", false}};
    const char *join = "";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!(types & names[i].type)) {
            continue;
        }
        add(dst, size, "%s", join);
        join = " or ";
        if (names[i].type == TR_KEY_TEXT && key->choices) {
            add_choices(key, dst, size);
            continue;
        }
        add(dst, size, "%s", names[i].words);
        if (names[i].ranged) {
            add_range(key, names[i].type == TR_KEY_SIZE, dst, size);
        }
        if (names[i].type == TR_KEY_LIST && key->length > 0) {
            add(dst, size, " of %d", key->length);
        }
        if (names[i].type == TR_KEY_LIST && key->elements) {
            add(dst, size, ", each ");
            add_types(key, key->elements, dst, size);
        }
    }
}

void tr__config_show_wanted(const tr_key *key, char *dst, size_t size) {
    dst[0] = '\0';
    add_types(key, key->types, dst, size);
    if (key->allow_auto) {
        add(dst, size, " or \"auto\"");
    }
}
