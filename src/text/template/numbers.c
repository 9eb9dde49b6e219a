#include "text/template/numbers.h"

#include "text/template/text_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NUMBER_MAX = 400 };

static tr_jinja_value fail_wide(tr_jinja_run *run) {
    tr__jinja_fail(run, "integers of over 64 bits are not supported");
    return tr__jinja_none();
}

static void fail_undefined(tr_jinja_run *run, const tr_jinja_value *self,
                           const char *filter) {
    if (self->kind == TR_JINJA_UNDEFINED) {
        tr__jinja_fail(run, "%s: '%.*s' is undefined", filter, (int)self->as.text.count,
                       self->as.text.bytes ? self->as.text.bytes : "");
    }
}

// ---- texts

// What is between blanks, with an end; false: it is empty, or too long for a number.
// Digits beyond ASCII are numbers to Python: they are refused, other letters are not.
static bool copy_number(tr_jinja_run *run, tr_jinja_string text,
                        char copy[NUMBER_MAX]) {
    size_t begin = tr__jinja_blanks_before(text), stop = tr__jinja_blanks_after(text);
    if (stop <= begin || stop - begin >= NUMBER_MAX) {
        return false;
    }
    for (size_t at = begin, length = 0; at < stop; at += length) {
        uint32_t c = tr__jinja_character(text, at, &length);
        if (c >= 0x80 && tr__jinja_is_numeric(run, c)) {
            tr__jinja_fail(run, "digits beyond ASCII are not supported (U+%04X)", c);
        }
    }
    memcpy(copy, text.bytes + begin, stop - begin);
    copy[stop - begin] = '\0';
    return strlen(copy) == stop - begin;
}

static int digit_of(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'z' ? c - 'a' + 10
           : c >= 'A' && c <= 'Z' ? c - 'A' + 10
                                  : 99;
}

// The digits at `text`, single underscores between them being allowed, without these to
// `dst`; returns where they end.
static const char *take_digits(const char *text, int base, char *dst, size_t *count) {
    const char *c = text;
    while (digit_of(*c) < base ||
           (*c == '_' && c > text && digit_of(c[1]) < base && c[-1] != '_')) {
        if (*c != '_') {
            dst[(*count)++] = *c;
        }
        c++;
    }
    return c;
}

// "0x", "0o", "0b" before digits of their base; base 0: these say which.
static const char *skip_prefix(const char *c, int *base) {
    int told = c[0] != '0'                  ? 0
               : c[1] == 'x' || c[1] == 'X' ? 16
               : c[1] == 'o' || c[1] == 'O' ? 8
               : c[1] == 'b' || c[1] == 'B' ? 2
                                            : 0;
    bool skip = told && (*base == 0 || *base == told);
    *base = *base != 0 ? *base : told ? told : 10;
    return skip ? c + 2 + (c[2] == '_') : c;
}

typedef enum reading { READ, NO_NUMBER, TOO_WIDE } reading;

static reading read_integer(const char *text, int base, int64_t *value) {
    char digits[NUMBER_MAX];
    size_t count = 0;
    bool below = *text == '-', automatic = base == 0;
    if (base < 0 || base == 1 || base > 36) {
        return NO_NUMBER;
    }
    const char *c = skip_prefix(text + (below || *text == '+'), &base);
    const char *end = take_digits(c, base, digits, &count);
    if (count == 0 || *end ||
        (automatic && base == 10 && digits[0] == '0' && strspn(digits, "0") < count)) {
        return NO_NUMBER;
    }
    *value = 0;
    for (size_t i = 0; i < count; i++) {
        int digit = digit_of(digits[i]);
        if (__builtin_mul_overflow(*value, base, value) ||
            __builtin_add_overflow(*value, below ? -digit : digit, value)) {
            return TOO_WIDE;
        }
    }
    return READ;
}

static bool read_real(const char *text, double *value) {
    char plain[NUMBER_MAX];
    size_t count = 0, digits = 0;
    const char *c = text + (*text == '-' || *text == '+');
    double sign = *text == '-' ? -1 : 1;
    if (strcasecmp(c, "inf") == 0 || strcasecmp(c, "infinity") == 0) {
        *value = sign * HUGE_VAL;
        return true;
    }
    if (strcasecmp(c, "nan") == 0) {
        *value = NAN;
        return true;
    }
    c = take_digits(c, 10, plain, &count);
    digits = count;
    if (*c == '.') {
        plain[count++] = *c++;
        c = take_digits(c, 10, plain, &count);
        digits = count - 1;
    }
    if (digits > 0 && (*c == 'e' || *c == 'E')) {
        plain[count++] = *c++;
        if (*c == '+' || *c == '-') {
            plain[count++] = *c++;
        }
        size_t before = count;
        c = take_digits(c, 10, plain, &count);
        digits = count > before ? digits : 0;
    }
    plain[count] = '\0';
    *value = copysign(strtod(plain, NULL), sign);
    return digits > 0 && *c == '\0';
}

// ---- int, float

// Towards zero; what is not finite has no integer.
static reading truncate(double real, int64_t *value) {
    if (!isfinite(real)) {
        return NO_NUMBER;
    }
    if (fabs(real) >= 0x1p63) {
        return TOO_WIDE;
    }
    *value = (int64_t)real;
    return READ;
}

static reading text_to_int(tr_jinja_run *run, tr_jinja_string text, int64_t base,
                           int64_t *value) {
    char copy[NUMBER_MAX];
    double real = 0;
    if (!copy_number(run, text, copy)) {
        return NO_NUMBER;
    }
    int known = base < 0 || base > 36 ? -1 : (int)base;
    reading how = read_integer(copy, known, value);
    if (how == NO_NUMBER && read_real(copy, &real)) {
        how = truncate(real, value);
    }
    return how;
}

tr_jinja_value tr__jinja_to_int(tr_jinja_run *run, const tr_jinja_value *self,
                                const tr_jinja_bound *arguments) {
    int64_t value = 0;
    reading how = NO_NUMBER;
    fail_undefined(run, self, "int");
    if (tr__jinja_is_integer(self)) {
        return tr__jinja_integer(tr__jinja_to_integer(self));
    }
    if (self->kind == TR_JINJA_TEXT) {
        int64_t base = tr__jinja_integer_or(run, arguments, 1, 10);
        how = text_to_int(run, self->as.text, base, &value);
    } else if (self->kind == TR_JINJA_REAL) {
        how = truncate(self->as.real, &value);
        if (isinf(self->as.real)) {
            tr__jinja_fail(run, "int: of an infinite number");
        }
    }
    return how == READ       ? tr__jinja_integer(value)
           : how == TOO_WIDE ? fail_wide(run)
                             : tr__jinja_or(arguments, 0, tr__jinja_integer(0));
}

tr_jinja_value tr__jinja_to_float(tr_jinja_run *run, const tr_jinja_value *self,
                                  const tr_jinja_bound *arguments) {
    char copy[NUMBER_MAX];
    double real = 0;
    fail_undefined(run, self, "float");
    if (tr__jinja_is_number(self)) {
        return tr__jinja_real(tr__jinja_to_real(self));
    }
    if (self->kind == TR_JINJA_TEXT && copy_number(run, self->as.text, copy) &&
        read_real(copy, &real)) {
        return tr__jinja_real(real);
    }
    return tr__jinja_or(arguments, 0, tr__jinja_real(0));
}

// ---- round, abs

// To the nearest, halves to even, of the number's exact value, as Python does.
static double round_real(double value, int places) {
    enum { LONGEST = 700 };
    char text[LONGEST];
    if (!isfinite(value) || places > 300) {
        return value;
    }
    snprintf(text, sizeof text, "%.*f", places, value);
    return strtod(text, NULL);
}

static tr_jinja_value round_common(tr_jinja_run *run, const tr_jinja_value *self,
                                   int64_t places) {
    if (places < 0) {
        tr__jinja_fail(run, "round: a precision below 0 is not supported");
    }
    return tr__jinja_is_integer(self)
               ? tr__jinja_integer(tr__jinja_to_integer(self))
               : tr__jinja_real(
                     round_real(self->as.real, places < 301 ? (int)places : 301));
}

tr_jinja_value tr__jinja_round(tr_jinja_run *run, const tr_jinja_value *self,
                               const tr_jinja_bound *arguments) {
    int64_t places = tr__jinja_integer_or(run, arguments, 0, 0);
    tr_jinja_string method = tr__jinja_text_or(run, arguments, 1, "common");
    if (!tr__jinja_is_number(self)) {
        tr__jinja_fail(run, "round: a number is wanted, not a %s",
                       tr__jinja_kind_name(self->kind));
        return tr__jinja_none();
    }
    if (tr__jinja_text_is(method, "common")) {
        return round_common(run, self, places);
    }
    bool up = tr__jinja_text_is(method, "ceil");
    double value = tr__jinja_to_real(self);
    // Beyond these, Python's integers and its powers of ten are exact, doubles are not.
    if (places < 0 || places > 15 || !(fabs(value) < 1e15) ||
        (!up && !tr__jinja_text_is(method, "floor"))) {
        tr__jinja_fail(run, "round: a method or a precision that is not supported");
        return tr__jinja_none();
    }
    double scale = 1;
    for (int64_t i = 0; i < places; i++) {
        scale *= 10;
    }
    double whole = up ? ceil(value * scale) : floor(value * scale);
    return tr__jinja_real(whole == 0 ? 0 : whole / scale);
}

tr_jinja_value tr__jinja_absolute(tr_jinja_run *run, const tr_jinja_value *self,
                                  const tr_jinja_bound *arguments) {
    (void)arguments;
    if (self->kind == TR_JINJA_REAL) {
        return tr__jinja_real(fabs(self->as.real));
    }
    if (!tr__jinja_is_integer(self)) {
        tr__jinja_fail(run, "abs: a number is wanted, not a %s",
                       tr__jinja_kind_name(self->kind));
        return tr__jinja_none();
    }
    int64_t value = tr__jinja_to_integer(self);
    return value == INT64_MIN ? fail_wide(run)
                              : tr__jinja_integer(value < 0 ? -value : value);
}
