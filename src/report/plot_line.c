#include "report/plot_line.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEY_MAX = 64,   // bytes of "a.b"
    DEPTH_MAX = 2,  // of objects
    DIGITS_MAX = 18 // of a step
};

// What a key is: a series, or one of these.
enum { STEP = PLOT_SERIES, SKIPPED, SPIKE, ROLLBACK, KEYS, OTHER = -1 };

static const char *const own_keys[KEYS - PLOT_SERIES] = {"step", "skipped", "spike",
                                                         "rollback_to"};

typedef struct scan {
    const char *at, *end; // a zero byte is at `end`
    plot_line *line;
    plot_hints *hints;
    int number; // of the next key in the line
    char path[KEY_MAX];
} scan;

static void skip_blanks(scan *s) {
    while (*s->at == ' ' || *s->at == '\t' || *s->at == '\n' || *s->at == '\r') {
        s->at++;
    }
}

static bool take(scan *s, char c) {
    bool is = *s->at == c;
    s->at += is;
    return is;
}

static bool take_word(scan *s, const char *word) {
    size_t length = strlen(word);
    bool is = strncmp(s->at, word, length) == 0;
    s->at += is ? length : 0;
    return is;
}

// Of plain characters; what they are is between `*begin` and s->at - 1.
static bool take_text(scan *s, const char **begin) {
    if (!take(s, '"')) {
        return false;
    }
    *begin = s->at;
    while (*s->at >= ' ' && *s->at < 0x7f && *s->at != '"' && *s->at != '\\') {
        s->at++;
    }
    return take(s, '"');
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// As JSON has it: strtod also takes other forms.
static bool take_number(scan *s, double *value) {
    const char *digits = s->at + (*s->at == '-');
    char *end;
    if (!is_digit(*digits) || (*digits == '0' && is_digit(digits[1])) ||
        (*digits == '0' && (digits[1] == 'x' || digits[1] == 'X'))) {
        return false;
    }
    *value = strtod(s->at, &end);
    const char *point = memchr(s->at, '.', (size_t)(end - s->at));
    bool good = isfinite(*value) && (!point || is_digit(point[1]));
    s->at = end;
    return good;
}

static const char *key_of(int number) {
    return number < PLOT_SERIES ? plot_key((plot_name)number)
                                : own_keys[number - PLOT_SERIES];
}

static int find_key(scan *s) {
    int hint = s->number < PLOT_KEYS_MAX ? s->hints->key[s->number] : OTHER;
    if (hint >= 0 && strcmp(key_of(hint), s->path) == 0) {
        return hint;
    }
    for (int i = 0; i < KEYS; i++) {
        const char *key = key_of(i);
        if (key[0] == s->path[0] && strcmp(key, s->path) == 0) {
            if (s->number < PLOT_KEYS_MAX) {
                s->hints->key[s->number] = i;
            }
            return i;
        }
    }
    return OTHER;
}

static bool take_step(scan *s, const char *begin) {
    size_t digits = strspn(begin, "0123456789");
    s->line->step = strtoll(begin, NULL, 10);
    return digits <= DIGITS_MAX && begin + digits == s->at;
}

static bool note_number(scan *s, int key, const char *begin, double value) {
    if (key == STEP) {
        return take_step(s, begin);
    }
    if (key >= 0 && key < PLOT_SERIES) {
        s->line->has[key] = isfinite(value);
        s->line->value[key] = value;
    } else if (key == ROLLBACK) {
        s->line->event[PLOT_ROLLBACK] = true;
    }
    return true;
}

// null, true, false or a text. Those who judge a line say what is wrong with a value.
static bool take_other(scan *s, int key) {
    const char *begin;
    if (take_word(s, "null")) {
        if (key >= 0 && key < PLOT_SERIES) {
            s->line->has[key] = false;
        }
        s->line->event[PLOT_ROLLBACK] |= key == ROLLBACK;
        return key != STEP;
    }
    bool yes = take_word(s, "true");
    if (yes || take_word(s, "false")) {
        s->line->event[PLOT_SKIPPED] |= yes && key == SKIPPED;
        return key == OTHER || key == SKIPPED;
    }
    s->line->event[PLOT_SPIKE] |= key == SPIKE;
    return take_text(s, &begin) && (key == OTHER || key == SPIKE);
}

// [least, mean, most] over ranks: the mean counts.
static bool take_spread(scan *s, int key) {
    for (int i = 0; i < 3; i++) {
        double value = NAN;
        const char *begin = s->at;
        if (!take_word(s, "null") && !take_number(s, &value)) {
            return false;
        }
        if (i == 1 && !note_number(s, key, begin, value)) {
            return false;
        }
        skip_blanks(s);
        if (!take(s, i < 2 ? ',' : ']')) {
            return false;
        }
        skip_blanks(s);
    }
    return true;
}

static bool take_object(scan *s, size_t prefix, int depth);

static bool take_value(scan *s, size_t path, int depth) {
    double value;
    const char *begin = s->at;
    if (take(s, '{')) {
        return depth < DEPTH_MAX && take_object(s, path, depth + 1);
    }
    int key = find_key(s);
    if (take(s, '[')) {
        return depth == DEPTH_MAX && take_spread(s, key);
    }
    return *s->at == '-' || is_digit(*s->at)
               ? take_number(s, &value) && note_number(s, key, begin, value)
               : take_other(s, key);
}

static bool take_member(scan *s, size_t prefix, int depth) {
    const char *name;
    if (!take_text(s, &name)) {
        return false;
    }
    size_t length = (size_t)(s->at - 1 - name), dot = prefix > 0;
    if (prefix + dot + length >= KEY_MAX || memchr(name, '.', length)) {
        return false;
    }
    s->path[prefix] = '.';
    memcpy(s->path + prefix + dot, name, length);
    s->path[prefix + dot + length] = '\0';
    skip_blanks(s);
    if (!take(s, ':')) {
        return false;
    }
    skip_blanks(s);
    bool good = take_value(s, prefix + dot + length, depth);
    s->number++;
    return good;
}

// Behind its '{'.
static bool take_object(scan *s, size_t prefix, int depth) {
    do {
        skip_blanks(s);
        if (!take_member(s, prefix, depth)) {
            return false;
        }
        skip_blanks(s);
    } while (take(s, ','));
    return take(s, '}');
}

bool plot_line_scan(const char *text, size_t length, plot_hints *hints,
                    plot_line *line) {
    scan s = {text, text + length, line, hints, 0, ""};
    memset(line->has, 0, sizeof line->has);
    memset(line->event, 0, sizeof line->event);
    line->step = -1;
    skip_blanks(&s);
    if (!take(&s, '{') || !take_object(&s, 0, 1)) {
        return false;
    }
    skip_blanks(&s);
    return s.at == s.end && line->step >= 0;
}
