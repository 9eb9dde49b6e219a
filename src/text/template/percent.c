#include "text/template/percent.h"

#include "text/template/strings.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WIDTH_MAX = 10000, PRECISION_MAX = 100, NUMBER_MAX = 512 };

// What stands between a percent sign and its letter.
typedef struct conversion {
    bool left, plus, blank, zeros;
    int64_t width, precision; // precision: -1 where there is none
    char letter;
} conversion;

typedef struct formatter {
    tr_jinja_run *run;
    tr_jinja_string text;
    size_t at;
    const tr_jinja_value *values;
    size_t next; // of a tuple's values
    bool named;  // a value was asked for by its name
    tr_jinja_buffer to;
} formatter;

static bool more(const formatter *f) {
    return f->at < f->text.count;
}

static char look(const formatter *f) {
    return more(f) ? f->text.bytes[f->at] : '\0';
}

// ---- values

static tr_jinja_value next_value(formatter *f) {
    bool tuple = f->values->kind == TR_JINJA_TUPLE;
    size_t count = tuple ? f->values->as.list->count : 1;
    if (f->named || f->next >= count) {
        tr__jinja_fail(f->run, "%%: the text asks for more values than there are");
        return tr__jinja_none();
    }
    f->next++;
    return tuple ? f->values->as.list->item[f->next - 1] : *f->values;
}

static tr_jinja_value named_value(formatter *f) {
    size_t begin = ++f->at;
    while (more(f) && look(f) != ')' && look(f) != '(') {
        f->at++;
    }
    tr_jinja_value key = tr__jinja_of_string(tr__jinja_part(f->text, begin, f->at));
    const tr_jinja_entry *entry = f->values->kind == TR_JINJA_DICT
                                      ? tr__jinja_dict_find(f->values->as.dict, &key)
                                      : NULL;
    if (look(f) != ')' || !entry) {
        tr__jinja_fail(f->run, "%%: there is no value '%.*s'",
                       (int)(key.as.text.count < 100 ? key.as.text.count : 100),
                       key.as.text.bytes);
        return tr__jinja_none();
    }
    f->at++;
    f->named = true;
    return entry->value;
}

// ---- what a conversion says

static int64_t read_count(formatter *f, int64_t most) {
    int64_t count = 0;
    while (look(f) >= '0' && look(f) <= '9') {
        count = 10 * count + (look(f) - '0');
        f->at++;
        if (count > most) {
            tr__jinja_fail(f->run, "%%: a width or a precision over %lld",
                           (long long)most);
            return 0;
        }
    }
    return count;
}

static conversion read_conversion(formatter *f) {
    conversion c = {.precision = -1};
    for (;; f->at++) {
        char flag = look(f);
        c.left = c.left || flag == '-';
        c.plus = c.plus || flag == '+';
        c.blank = c.blank || flag == ' ';
        c.zeros = c.zeros || flag == '0';
        if (!flag || !strchr("-+ 0", flag)) {
            break;
        }
    }
    c.width = read_count(f, WIDTH_MAX);
    if (look(f) == '.') {
        f->at++;
        c.precision = read_count(f, PRECISION_MAX);
    }
    c.letter = look(f);
    f->at += more(f);
    return c;
}

// ---- showing values

static void pad(formatter *f, int64_t count, const char *with) {
    for (int64_t i = 0; i < count; i++) {
        tr__jinja_add_word(f->run, &f->to, with);
    }
}

// A sign, zeros where they are asked for, and digits.
static void put_number(formatter *f, const conversion *c, bool below,
                       const char *digits) {
    const char *sign = below ? "-" : c->plus ? "+" : c->blank ? " " : "";
    int64_t missing = c->width - (int64_t)(strlen(sign) + strlen(digits));
    bool zeros = c->zeros && !c->left;
    pad(f, c->left || zeros ? 0 : missing, " ");
    tr__jinja_add_word(f->run, &f->to, sign);
    pad(f, zeros ? missing : 0, "0");
    tr__jinja_add_word(f->run, &f->to, digits);
    pad(f, c->left ? missing : 0, " ");
}

static void put_text(formatter *f, const conversion *c, tr_jinja_string text) {
    if (c->precision >= 0) {
        text = tr__jinja_part(text, 0, tr__jinja_byte_of(text, c->precision));
    }
    int64_t missing = c->width - tr__jinja_length(text);
    pad(f, c->left ? 0 : missing, " ");
    tr__jinja_add(f->run, &f->to, text);
    pad(f, c->left ? missing : 0, " ");
}

static void fail_kind(formatter *f, const conversion *c, const tr_jinja_value *value) {
    tr__jinja_fail(f->run, "%%%c: not of a %s", c->letter,
                   tr__jinja_kind_name(value->kind));
}

static void put_integer(formatter *f, const conversion *c,
                        const tr_jinja_value *value) {
    char digits[NUMBER_MAX];
    bool decimal = strchr("diu", c->letter) != NULL;
    bool real = value->kind == TR_JINJA_REAL;
    bool known =
        real ? decimal && fabs(value->as.real) < 0x1p63 : tr__jinja_is_integer(value);
    if (!known) {
        fail_kind(f, c, value);
        return;
    }
    int64_t whole = real ? (int64_t)value->as.real : tr__jinja_to_integer(value);
    unsigned long long size =
        whole < 0 ? 0 - (unsigned long long)whole : (unsigned long long)whole;
    int least = c->precision > 1 ? (int)c->precision : 1;
    switch (c->letter) {
    case 'x':
        snprintf(digits, sizeof digits, "%.*llx", least, size);
        break;
    case 'X':
        snprintf(digits, sizeof digits, "%.*llX", least, size);
        break;
    case 'o':
        snprintf(digits, sizeof digits, "%.*llo", least, size);
        break;
    default:
        snprintf(digits, sizeof digits, "%.*llu", least, size);
    }
    put_number(f, c, whole < 0, digits);
}

static void put_real(formatter *f, const conversion *c, const tr_jinja_value *value) {
    char digits[NUMBER_MAX], format[] = {'%', '.', '*', c->letter, '\0'};
    double real = tr__jinja_is_number(value) ? tr__jinja_to_real(value) : NAN;
    if (!isfinite(real)) {
        fail_kind(f, c, value);
        return;
    }
    int precision = c->precision < 0 ? 6 : (int)c->precision;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(digits, sizeof digits, format, precision, fabs(real));
#pragma GCC diagnostic pop
    put_number(f, c, signbit(real), digits);
}

static void put_character(formatter *f, const conversion *c,
                          const tr_jinja_value *value) {
    char bytes[4];
    tr_jinja_string text = {bytes, 0};
    int64_t code = tr__jinja_is_integer(value) ? tr__jinja_to_integer(value) : -1;
    if (value->kind == TR_JINJA_TEXT && tr__jinja_length(value->as.text) == 1) {
        text = value->as.text;
    } else if (code >= 0 && code < 0x110000 && (code < 0xd800 || code >= 0xe000)) {
        text.count = tr__jinja_character_write((uint32_t)code, bytes);
    } else {
        fail_kind(f, c, value);
    }
    put_text(f, &(conversion){.left = c->left, .width = c->width, .precision = -1},
             text);
}

static void put_value(formatter *f, const conversion *c, const tr_jinja_value *value) {
    tr_jinja_buffer quoted = {0};
    switch (c->letter) {
    case 's':
        put_text(f, c, tr__jinja_to_text(f->run, value));
        break;
    case 'r':
        tr__jinja_print_quoted(f->run, &quoted, value);
        put_text(f, c,
                 (tr_jinja_string){quoted.bytes ? quoted.bytes : "", quoted.count});
        break;
    case 'd':
    case 'i':
    case 'u':
    case 'x':
    case 'X':
    case 'o':
        put_integer(f, c, value);
        break;
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
        put_real(f, c, value);
        break;
    case 'c':
        put_character(f, c, value);
        break;
    default:
        tr__jinja_fail(f->run, "%%: the conversion '%c' is not supported",
                       c->letter ? c->letter : ' ');
    }
}

// ----

static void put_conversion(formatter *f) {
    f->at++;
    bool named = look(f) == '(';
    tr_jinja_value value = named ? named_value(f) : tr__jinja_none();
    conversion c = read_conversion(f);
    if (c.letter == '%') {
        tr__jinja_add_word(f->run, &f->to, "%");
        return;
    }
    if (!named) {
        value = next_value(f);
    }
    if (f->run->status == TR_OK) {
        put_value(f, &c, &value);
    }
}

tr_jinja_value tr__jinja_percent(tr_jinja_run *run, tr_jinja_string text,
                                 const tr_jinja_value *values) {
    formatter f = {.run = run, .text = text, .values = values};
    while (more(&f) && run->status == TR_OK) {
        const char *sign = memchr(text.bytes + f.at, '%', text.count - f.at);
        size_t end = sign ? (size_t)(sign - text.bytes) : text.count;
        tr__jinja_add(run, &f.to, tr__jinja_part(text, f.at, end));
        f.at = end;
        if (sign) {
            put_conversion(&f);
        }
    }
    bool tuple = values->kind == TR_JINJA_TUPLE;
    bool may_stay = values->kind == TR_JINJA_DICT || values->kind == TR_JINJA_LIST ||
                    values->kind == TR_JINJA_RANGE;
    if (!may_stay && f.next < (tuple ? values->as.list->count : 1)) {
        tr__jinja_fail(run, "%%: there are more values than the text asks for");
    }
    return tr__jinja_text(f.to.bytes ? f.to.bytes : "", f.to.count);
}
