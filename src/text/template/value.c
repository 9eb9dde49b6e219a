#include "text/template/value.h"

#include <string.h>

bool tr__jinja_is_series(const tr_jinja_value *value) {
    return value->kind >= TR_JINJA_LIST && value->kind <= TR_JINJA_GENERATOR;
}

bool tr__jinja_is_sequence(const tr_jinja_value *value) {
    return value->kind >= TR_JINJA_LIST && value->kind <= TR_JINJA_RANGE;
}

bool tr__jinja_is_key(const tr_jinja_value *value) {
    bool key = value->kind <= TR_JINJA_TEXT || value->kind == TR_JINJA_RANGE;
    if (value->kind == TR_JINJA_TUPLE) {
        key = true;
        for (size_t i = 0; key && i < value->as.list->count; i++) {
            key = tr__jinja_is_key(&value->as.list->item[i]);
        }
    }
    return key;
}

tr_jinja_extent tr__jinja_extent(const tr_jinja_value *value) {
    if (tr__jinja_is_series(value)) {
        return value->as.list->extent;
    }
    if (value->kind == TR_JINJA_DICT) {
        return value->as.dict->extent;
    }
    bool text = value->kind == TR_JINJA_TEXT;
    return (tr_jinja_extent){1 + (text ? (int64_t)value->as.text.count / 16 : 0), 0};
}

bool tr__jinja_is_integer(const tr_jinja_value *value) {
    return value->kind == TR_JINJA_INTEGER || value->kind == TR_JINJA_BOOL;
}

bool tr__jinja_is_number(const tr_jinja_value *value) {
    return tr__jinja_is_integer(value) || value->kind == TR_JINJA_REAL;
}

int64_t tr__jinja_to_integer(const tr_jinja_value *value) {
    return value->kind == TR_JINJA_BOOL ? value->as.truth : value->as.integer;
}

double tr__jinja_to_real(const tr_jinja_value *value) {
    return value->kind == TR_JINJA_REAL ? value->as.real
                                        : (double)tr__jinja_to_integer(value);
}

bool tr__jinja_is_true(const tr_jinja_value *value) {
    switch (value->kind) {
    case TR_JINJA_UNDEFINED:
    case TR_JINJA_NONE:
        return false;
    case TR_JINJA_BOOL:
    case TR_JINJA_INTEGER:
        return tr__jinja_to_integer(value) != 0;
    case TR_JINJA_REAL:
        return value->as.real != 0;
    case TR_JINJA_TEXT:
        return value->as.text.count > 0;
    case TR_JINJA_LIST:
    case TR_JINJA_TUPLE:
    case TR_JINJA_RANGE:
    case TR_JINJA_VIEW:
        return value->as.list->count > 0;
    case TR_JINJA_DICT:
        return value->as.dict->count > 0;
    default:
        return true;
    }
}

bool tr__jinja_same_text(tr_jinja_string a, tr_jinja_string b) {
    return a.count == b.count &&
           (a.count == 0 || memcmp(a.bytes, b.bytes, a.count) == 0);
}

bool tr__jinja_text_is(tr_jinja_string text, const char *word) {
    return tr__jinja_same_text(text, (tr_jinja_string){word, strlen(word)});
}

static bool equal_lists(const tr_jinja_list *a, const tr_jinja_list *b) {
    bool equal = a->count == b->count;
    for (size_t i = 0; equal && i < a->count; i++) {
        equal = tr__jinja_equal(&a->item[i], &b->item[i]);
    }
    return equal;
}

static bool equal_dicts(const tr_jinja_dict *a, const tr_jinja_dict *b) {
    bool equal = a->count == b->count;
    for (size_t i = 0; equal && i < a->count; i++) {
        const tr_jinja_entry *other = tr__jinja_dict_find(b, &a->entry[i].key);
        equal = other && tr__jinja_equal(&a->entry[i].value, &other->value);
    }
    return equal;
}

// Python compares an integer with a real exactly. A long double holds both: it has 64
// bits of digits at least wherever Tranche is built.
static long double exact(const tr_jinja_value *number) {
    return number->kind == TR_JINJA_REAL ? (long double)number->as.real
                                         : (long double)tr__jinja_to_integer(number);
}

bool tr__jinja_equal(const tr_jinja_value *a, const tr_jinja_value *b) {
    if (tr__jinja_is_number(a) && tr__jinja_is_number(b)) {
        return exact(a) == exact(b);
    }
    if (a->kind != b->kind) {
        return false;
    }
    switch (a->kind) {
    case TR_JINJA_UNDEFINED:
    case TR_JINJA_NONE:
        return true;
    case TR_JINJA_TEXT:
        return tr__jinja_same_text(a->as.text, b->as.text);
    case TR_JINJA_LIST:
    case TR_JINJA_TUPLE:
    case TR_JINJA_RANGE:
    case TR_JINJA_VIEW:
        return equal_lists(a->as.list, b->as.list);
    case TR_JINJA_DICT:
        return equal_dicts(a->as.dict, b->as.dict);
    case TR_JINJA_NAMESPACE:
        return a->as.dict == b->as.dict;
    case TR_JINJA_MACRO:
        return a->as.macro == b->as.macro;
    case TR_JINJA_GLOBAL:
        return a->as.global == b->as.global;
    default:
        return false;
    }
}

static int order_texts(tr_jinja_string a, tr_jinja_string b) {
    size_t least = a.count < b.count ? a.count : b.count;
    int order = least > 0 ? memcmp(a.bytes, b.bytes, least) : 0;
    return order != 0 ? order : (a.count > b.count) - (a.count < b.count);
}

static bool order_lists(const tr_jinja_list *a, const tr_jinja_list *b, int *order) {
    for (size_t i = 0; i < a->count && i < b->count; i++) {
        if (!tr__jinja_equal(&a->item[i], &b->item[i])) {
            return tr__jinja_order(&a->item[i], &b->item[i], order);
        }
    }
    *order = (a->count > b->count) - (a->count < b->count);
    return true;
}

bool tr__jinja_order(const tr_jinja_value *a, const tr_jinja_value *b, int *order) {
    if (tr__jinja_is_number(a) && tr__jinja_is_number(b)) {
        long double x = exact(a), y = exact(b);
        *order = (x > y) - (x < y);
        return x == x && y == y; // what is not a number has no order
    }
    if (a->kind == TR_JINJA_TEXT && b->kind == TR_JINJA_TEXT) {
        *order = order_texts(a->as.text, b->as.text);
        return true;
    }
    bool lists =
        a->kind == b->kind && (a->kind == TR_JINJA_LIST || a->kind == TR_JINJA_TUPLE);
    return lists && order_lists(a->as.list, b->as.list, order);
}

tr_jinja_entry *tr__jinja_dict_find(const tr_jinja_dict *dict,
                                    const tr_jinja_value *key) {
    for (size_t i = 0; i < dict->count; i++) {
        if (tr__jinja_equal(&dict->entry[i].key, key)) {
            return &dict->entry[i];
        }
    }
    return NULL;
}

const char *tr__jinja_kind_name(tr_jinja_kind kind) {
    static const char *const names[] = {
        "undefined", "None",    "bool",      "int",   "float",
        "str",       "list",    "tuple",     "range", "dictionary view",
        "generator", "dict",    "namespace", "loop",  "macro",
        "method",    "function"};
    return names[kind];
}
