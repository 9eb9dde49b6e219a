// str() and repr() of Python.
#include "text/template/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- numbers

// The fewest digits that are read as the same number, and the power of ten of the
// first.
static void find_digits(double value, char digits[32], int *power) {
    char text[40];
    for (int precision = 0; precision < 17; precision++) {
        snprintf(text, sizeof text, "%.*e", precision, value);
        if (strtod(text, NULL) == value) {
            break;
        }
    }
    char *e = strchr(text, 'e');
    *power = atoi(e + 1);
    size_t count = 0;
    for (const char *c = text; c < e; c++) {
        if (*c >= '0' && *c <= '9') {
            digits[count++] = *c;
        }
    }
    digits[count] = '\0';
}

static void lay_out(char *dst, size_t size, const char *digits, int power) {
    int count = (int)strlen(digits);
    if (power < -4 || power >= 16) {
        snprintf(dst, size, "%c%s%se%c%02d", digits[0], count > 1 ? "." : "",
                 digits + 1, power < 0 ? '-' : '+', abs(power));
    } else if (power < 0) {
        snprintf(dst, size, "0.%.*s%s", -power - 1, "0000", digits);
    } else if (count <= power + 1) {
        snprintf(dst, size, "%s%.*s.0", digits, power + 1 - count, "0000000000000000");
    } else {
        snprintf(dst, size, "%.*s.%s", power + 1, digits, digits + power + 1);
    }
}

void tr__jinja_print_real(tr_jinja_run *run, tr_jinja_buffer *to, double value) {
    char digits[32], text[64];
    int power = 0;
    if (!isfinite(value)) {
        tr__jinja_add_word(run, to, isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
        return;
    }
    find_digits(fabs(value), digits, &power);
    lay_out(text, sizeof text, digits, power);
    tr__jinja_add_word(run, to, signbit(value) ? "-" : "");
    tr__jinja_add_word(run, to, text);
}

// ---- repr of a text

// Shown as it is. What Python escapes beyond ASCII: controls, blanks but the space,
// what formats, private use.
static bool printable(uint32_t c) {
    return c >= 0x20 && c != 0x7f && !(c >= 0x80 && c <= 0xa0) && c != 0xad &&
           !(c >= 0x200b && c <= 0x200f) && !(c >= 0x202a && c <= 0x202e) &&
           !(c >= 0x2060 && c <= 0x206f) && !(c >= 0xe000 && c < 0xf900) &&
           c != 0xfeff && !(c >= 0xfff0 && c <= 0xfffb) && c < 0xe0000 &&
           (c == ' ' || !tr__jinja_is_space(c));
}

static void print_escape(tr_jinja_run *run, tr_jinja_buffer *to, uint32_t c) {
    char text[16];
    const char *named = c == '\n'   ? "\\n"
                        : c == '\r' ? "\\r"
                        : c == '\t' ? "\\t"
                                    : NULL;
    if (c < 0x100) {
        snprintf(text, sizeof text, "\\x%02x", c);
    } else if (c < 0x10000) {
        snprintf(text, sizeof text, "\\u%04x", c);
    } else {
        snprintf(text, sizeof text, "\\U%08x", c);
    }
    tr__jinja_add_word(run, to, named ? named : text);
}

static void quote(tr_jinja_run *run, tr_jinja_buffer *to, tr_jinja_string text) {
    bool single = text.count > 0 && memchr(text.bytes, '\'', text.count);
    bool both = single && memchr(text.bytes, '"', text.count);
    char quote[] = {single && !both ? '"' : '\'', '\0'};
    tr__jinja_add_word(run, to, quote);
    for (size_t at = 0, length = 0; at < text.count && run->status == TR_OK;
         at += length) {
        uint32_t c = tr__jinja_character(text, at, &length);
        if (c == '\\' || c == (uint32_t)quote[0]) {
            tr__jinja_add_word(run, to, "\\");
        }
        if (printable(c)) {
            tr__jinja_add(run, to, tr__jinja_part(text, at, at + length));
        } else {
            print_escape(run, to, c);
        }
    }
    tr__jinja_add_word(run, to, quote);
}

// ---- values

static void print_items(tr_jinja_run *run, tr_jinja_buffer *to,
                        const tr_jinja_list *list) {
    for (size_t i = 0; i < list->count && run->status == TR_OK; i++) {
        tr__jinja_add_word(run, to, i > 0 ? ", " : "");
        tr__jinja_print_quoted(run, to, &list->item[i]);
    }
}

static void print_dict(tr_jinja_run *run, tr_jinja_buffer *to,
                       const tr_jinja_dict *dict) {
    tr__jinja_add_word(run, to, "{");
    for (size_t i = 0; i < dict->count && run->status == TR_OK; i++) {
        tr__jinja_add_word(run, to, i > 0 ? ", " : "");
        tr__jinja_print_quoted(run, to, &dict->entry[i].key);
        tr__jinja_add_word(run, to, ": ");
        tr__jinja_print_quoted(run, to, &dict->entry[i].value);
    }
    tr__jinja_add_word(run, to, "}");
}

static void print_integer(tr_jinja_run *run, tr_jinja_buffer *to, int64_t value) {
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    tr__jinja_add_word(run, to, text);
}

static void print_range(tr_jinja_run *run, tr_jinja_buffer *to,
                        const tr_jinja_list *range) {
    tr__jinja_add_word(run, to, "range(");
    print_integer(run, to, range->start);
    tr__jinja_add_word(run, to, ", ");
    print_integer(run, to, range->stop);
    if (range->step != 1) {
        tr__jinja_add_word(run, to, ", ");
        print_integer(run, to, range->step);
    }
    tr__jinja_add_word(run, to, ")");
}

void tr__jinja_print(tr_jinja_run *run, tr_jinja_buffer *to,
                     const tr_jinja_value *value) {
    tr__jinja_charge(run, 1);
    switch (value->kind) {
    case TR_JINJA_UNDEFINED:
        break;
    case TR_JINJA_NONE:
        tr__jinja_add_word(run, to, "None");
        break;
    case TR_JINJA_BOOL:
        tr__jinja_add_word(run, to, value->as.truth ? "True" : "False");
        break;
    case TR_JINJA_INTEGER:
        print_integer(run, to, value->as.integer);
        break;
    case TR_JINJA_REAL:
        tr__jinja_print_real(run, to, value->as.real);
        break;
    case TR_JINJA_TEXT:
        tr__jinja_add(run, to, value->as.text);
        break;
    case TR_JINJA_LIST:
        tr__jinja_add_word(run, to, "[");
        print_items(run, to, value->as.list);
        tr__jinja_add_word(run, to, "]");
        break;
    case TR_JINJA_TUPLE:
        tr__jinja_add_word(run, to, "(");
        print_items(run, to, value->as.list);
        tr__jinja_add_word(run, to, value->as.list->count == 1 ? ",)" : ")");
        break;
    case TR_JINJA_RANGE:
        print_range(run, to, value->as.list);
        break;
    case TR_JINJA_DICT:
        print_dict(run, to, value->as.dict);
        break;
    default:
        tr__jinja_fail(run, "a %s cannot be printed", tr__jinja_kind_name(value->kind));
    }
}

void tr__jinja_print_quoted(tr_jinja_run *run, tr_jinja_buffer *to,
                            const tr_jinja_value *value) {
    if (value->kind == TR_JINJA_TEXT && !value->safe) {
        quote(run, to, value->as.text);
    } else if (value->kind == TR_JINJA_UNDEFINED) {
        tr__jinja_add_word(run, to, "Undefined");
    } else if (value->kind == TR_JINJA_TEXT) {
        tr__jinja_fail(run, "a list of texts marked `safe` cannot be printed");
    } else {
        tr__jinja_print(run, to, value);
    }
}

tr_jinja_string tr__jinja_to_text(tr_jinja_run *run, const tr_jinja_value *value) {
    tr_jinja_buffer to = {0};
    if (value->kind == TR_JINJA_TEXT) {
        return value->as.text;
    }
    tr__jinja_print(run, &to, value);
    return (tr_jinja_string){to.bytes ? to.bytes : "", to.count};
}

tr_jinja_string tr__jinja_escape(tr_jinja_run *run, tr_jinja_string text) {
    static const char special[] = "&<>'\"";
    static const char *const words[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    tr_jinja_buffer to = {0};
    size_t done = 0;
    for (size_t i = 0; i < text.count; i++) {
        const char *found = text.bytes[i] ? strchr(special, text.bytes[i]) : NULL;
        if (found) {
            tr__jinja_add(run, &to, tr__jinja_part(text, done, i));
            tr__jinja_add_word(run, &to, words[found - special]);
            done = i + 1;
        }
    }
    tr__jinja_add(run, &to, tr__jinja_part(text, done, text.count));
    return (tr_jinja_string){to.bytes ? to.bytes : "", to.count};
}
