#include "text/template/tojson.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct writer {
    tr_jinja_run *run;
    tr_jinja_buffer *to;
    const tr_jinja_json_style *style;
    int level;
} writer;

static void write_value(writer *w, const tr_jinja_value *value);

static void word(const writer *w, const char *text) {
    tr__jinja_add_word(w->run, w->to, text);
}

// ---- texts

static void write_unit(const writer *w, uint32_t unit) {
    char text[16];
    snprintf(text, sizeof text, "\\u%04x", unit);
    word(w, text);
}

static void write_escape(const writer *w, uint32_t c) {
    static const char special[] = "\"\\\n\r\t\f\b", names[] = "\"\\nrtfb";
    const char *found = c > 0 && c < 0x80 ? strchr(special, (int)c) : NULL;
    if (found) {
        char text[] = {'\\', names[found - special], '\0'};
        word(w, text);
    } else if (c < 0x10000) {
        write_unit(w, c);
    } else {
        write_unit(w, 0xd800 + ((c - 0x10000) >> 10));
        write_unit(w, 0xdc00 + ((c - 0x10000) & 0x3ff));
    }
}

static void write_text(const writer *w, tr_jinja_string text) {
    size_t done = 0, length = 0;
    word(w, "\"");
    for (size_t at = 0; at < text.count; at += length) {
        uint32_t c = tr__jinja_character(text, at, &length);
        bool plain = c >= 0x20 && c != '"' && c != '\\' &&
                     (c < 0x7f || !w->style->ascii || c == 0x7f);
        if (!plain) {
            tr__jinja_add(w->run, w->to, tr__jinja_part(text, done, at));
            write_escape(w, c);
            done = at + length;
        }
    }
    tr__jinja_add(w->run, w->to, tr__jinja_part(text, done, text.count));
    word(w, "\"");
}

// ---- lists and dictionaries

static void begin_line(const writer *w) {
    word(w, "\n");
    for (int i = 0; i < w->level && w->run->status == TR_OK; i++) {
        tr__jinja_add(w->run, w->to, w->style->indent);
    }
}

static void begin_element(const writer *w, size_t index) {
    if (index > 0) {
        tr__jinja_add(w->run, w->to, w->style->item);
    }
    if (w->style->lines) {
        begin_line(w);
    }
}

static void end_elements(writer *w, const char *close) {
    w->level--;
    if (w->style->lines) {
        begin_line(w);
    }
    word(w, close);
}

static void write_list(writer *w, const tr_jinja_list *list) {
    if (list->count == 0) {
        word(w, "[]");
        return;
    }
    word(w, "[");
    w->level++;
    for (size_t i = 0; i < list->count && w->run->status == TR_OK; i++) {
        begin_element(w, i);
        write_value(w, &list->item[i]);
    }
    end_elements(w, "]");
}

static void write_key(writer *w, const tr_jinja_value *key) {
    bool quoted = key->kind != TR_JINJA_TEXT;
    if (quoted && key->kind != TR_JINJA_NONE && !tr__jinja_is_number(key)) {
        tr__jinja_fail(w->run, "tojson: a key of type %s",
                       tr__jinja_kind_name(key->kind));
    }
    word(w, quoted ? "\"" : "");
    write_value(w, key);
    word(w, quoted ? "\"" : "");
    tr__jinja_add(w->run, w->to, w->style->key);
}

static int by_key(const void *a, const void *b) {
    const tr_jinja_entry *x = a, *y = b;
    int order = 0;
    tr__jinja_order(&x->key, &y->key, &order);
    return order;
}

// The entries in the order of their keys.
static const tr_jinja_entry *sort(writer *w, const tr_jinja_dict *dict) {
    tr_jinja_entry *entry = tr__jinja_take(w->run, dict->count, sizeof *entry);
    if (!entry) {
        return dict->entry;
    }
    memcpy(entry, dict->entry, dict->count * sizeof *entry);
    for (size_t i = 1; i < dict->count; i++) {
        tr__jinja_compare(w->run, &entry[0].key, &entry[i].key);
    }
    qsort(entry, dict->count, sizeof *entry, by_key);
    return entry;
}

static void write_dict(writer *w, const tr_jinja_dict *dict) {
    if (dict->count == 0) {
        word(w, "{}");
        return;
    }
    const tr_jinja_entry *entry = w->style->sorted ? sort(w, dict) : dict->entry;
    word(w, "{");
    w->level++;
    for (size_t i = 0; i < dict->count && w->run->status == TR_OK; i++) {
        begin_element(w, i);
        write_key(w, &entry[i].key);
        write_value(w, &entry[i].value);
    }
    end_elements(w, "}");
}

static void write_real(const writer *w, const tr_jinja_value *value) {
    double real = value->as.real;
    if (isfinite(real)) {
        tr__jinja_print(w->run, w->to, value);
    } else {
        word(w, isnan(real) ? "NaN" : real < 0 ? "-Infinity" : "Infinity");
    }
}

static void write_value(writer *w, const tr_jinja_value *value) {
    tr__jinja_charge(w->run, 1);
    switch (value->kind) {
    case TR_JINJA_NONE:
        word(w, "null");
        break;
    case TR_JINJA_BOOL:
        word(w, value->as.truth ? "true" : "false");
        break;
    case TR_JINJA_INTEGER:
        tr__jinja_print(w->run, w->to, value);
        break;
    case TR_JINJA_REAL:
        write_real(w, value);
        break;
    case TR_JINJA_TEXT:
        write_text(w, value->as.text);
        break;
    case TR_JINJA_LIST:
    case TR_JINJA_TUPLE:
        write_list(w, value->as.list);
        break;
    case TR_JINJA_DICT:
        write_dict(w, value->as.dict);
        break;
    default:
        tr__jinja_fail(w->run, "tojson: a value of type %s is no JSON",
                       tr__jinja_kind_name(value->kind));
    }
}

void tr__jinja_to_json(tr_jinja_run *run, tr_jinja_buffer *to,
                       const tr_jinja_value *value, const tr_jinja_json_style *style) {
    writer w = {run, to, style, 0};
    write_value(&w, value);
}
