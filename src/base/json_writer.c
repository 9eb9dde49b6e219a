#include "base/json_writer.h"

#include "base/text.h"

#include <inttypes.h>
#include <math.h>

tr_json_writer tr__json_writer(FILE *to) {
    return (tr_json_writer){.to = to, .indent = -1};
}

static void end_line(tr_json_writer *w) {
    if (w->indent >= 0) {
        fprintf(w->to, "\n%*s", w->indent, "");
        w->indent = -1;
    }
}

// What stands between the last value and the next.
static void separate(tr_json_writer *w) {
    if (w->comma) {
        fputs(w->indent >= 0 ? "," : ", ", w->to);
    }
    end_line(w);
    w->comma = true;
}

void tr__json_open(tr_json_writer *w, char bracket) {
    separate(w);
    fputc(bracket, w->to);
    w->comma = false;
}

void tr__json_close(tr_json_writer *w, char bracket) {
    end_line(w);
    fputc(bracket, w->to);
    w->comma = true;
}

void tr__json_line(tr_json_writer *w, int indent) {
    w->indent = indent;
}

static void quote(const char *text, FILE *to) {
    fputc('"', to);
    tr__print_escaped(text, to);
    fputc('"', to);
}

void tr__json_key(tr_json_writer *w, const char *key) {
    separate(w);
    quote(key, w->to);
    fputs(": ", w->to);
    w->comma = false;
}

void tr__json_add_text(tr_json_writer *w, const char *text) {
    separate(w);
    quote(text, w->to);
}

void tr__json_add_integer(tr_json_writer *w, int64_t value) {
    separate(w);
    fprintf(w->to, "%" PRId64, value);
}

void tr__json_add_bool(tr_json_writer *w, bool value) {
    separate(w);
    fputs(value ? "true" : "false", w->to);
}

void tr__json_add_null(tr_json_writer *w) {
    separate(w);
    fputs("null", w->to);
}

// So many digits in all, or after the point; see printf's %g, %f and %e.
typedef enum number_form { SHORTEST, POINT, EXPONENT } number_form;

static void add_double(tr_json_writer *w, double value, number_form form, int digits) {
    if (!isfinite(value)) {
        tr__json_add_null(w);
        return;
    }
    separate(w);
    switch (form) {
    case SHORTEST:
        fprintf(w->to, "%.*g", digits, value);
        break;
    case POINT:
        fprintf(w->to, "%.*f", digits, value);
        break;
    case EXPONENT:
        fprintf(w->to, "%.*e", digits, value);
        break;
    }
}

void tr__json_add_real(tr_json_writer *w, double value) {
    add_double(w, value, SHORTEST, 9);
}

void tr__json_add_fixed(tr_json_writer *w, double value) {
    add_double(w, value, POINT, 3);
}

void tr__json_add_digits(tr_json_writer *w, double value, int digits) {
    add_double(w, value, SHORTEST, digits);
}

void tr__json_add_whole(tr_json_writer *w, double value) {
    bool large = !(fabs(value) < 0x1p53);
    add_double(w, value, large ? EXPONENT : POINT, large ? 16 : 0);
}

void tr__json_put_text(tr_json_writer *w, const char *key, const char *text) {
    tr__json_key(w, key);
    tr__json_add_text(w, text);
}

void tr__json_put_integer(tr_json_writer *w, const char *key, int64_t value) {
    tr__json_key(w, key);
    tr__json_add_integer(w, value);
}

void tr__json_put_bool(tr_json_writer *w, const char *key, bool value) {
    tr__json_key(w, key);
    tr__json_add_bool(w, value);
}

void tr__json_put_real(tr_json_writer *w, const char *key, double value) {
    tr__json_key(w, key);
    tr__json_add_real(w, value);
}

void tr__json_put_fixed(tr_json_writer *w, const char *key, double value) {
    tr__json_key(w, key);
    tr__json_add_fixed(w, value);
}

void tr__json_put_digits(tr_json_writer *w, const char *key, double value, int digits) {
    tr__json_key(w, key);
    tr__json_add_digits(w, value, digits);
}

void tr__json_put_whole(tr_json_writer *w, const char *key, double value) {
    tr__json_key(w, key);
    tr__json_add_whole(w, value);
}

void tr__json_put_open(tr_json_writer *w, const char *key, char bracket) {
    tr__json_key(w, key);
    tr__json_open(w, bracket);
}
