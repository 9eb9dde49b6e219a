// The values of a template: Python's, as far as templates meet them.
//
// Lists and dictionaries never change once they are made (the sandbox forbids it);
// only namespaces do.
#ifndef TR_TEXT_TEMPLATE_VALUE_H
#define TR_TEXT_TEMPLATE_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum tr_jinja_kind {
    TR_JINJA_UNDEFINED, // text: the name that is not defined
    TR_JINJA_NONE,
    TR_JINJA_BOOL,
    TR_JINJA_INTEGER,
    TR_JINJA_REAL,
    TR_JINJA_TEXT,
    TR_JINJA_LIST,
    TR_JINJA_TUPLE,
    TR_JINJA_RANGE,     // of range(): its integers, which its `bounds` describe
    TR_JINJA_VIEW,      // of a dictionary: keys, values, items
    TR_JINJA_GENERATOR, // what filters like `map` make: goes through its items once
    TR_JINJA_DICT,
    TR_JINJA_NAMESPACE,
    TR_JINJA_LOOP,
    TR_JINJA_MACRO,
    TR_JINJA_METHOD, // of a value: "x".split
    TR_JINJA_GLOBAL, // a function: range
} tr_jinja_kind;

typedef struct tr_jinja_string {
    const char *bytes; // UTF-8, not terminated
    size_t count;
} tr_jinja_string;

typedef struct tr_jinja_value tr_jinja_value;

// How large a value is with all that it holds: what going through it costs, and how
// deep that goes.
typedef struct tr_jinja_extent {
    int64_t weight; // values; at most 2^40
    int depth;
} tr_jinja_extent;

typedef struct tr_jinja_list { // also of tuples, ranges, views and generators
    tr_jinja_value *item;      // [count]
    size_t count;
    bool taken;                // a generator that has gone through its items
    int64_t start, stop, step; // of a range
    tr_jinja_extent extent;
} tr_jinja_list;

typedef struct tr_jinja_dict {    // also of namespaces
    struct tr_jinja_entry *entry; // [count], in the order of their making
    size_t count, capacity;
    tr_jinja_extent extent;
} tr_jinja_dict;

// What the variable `loop` is.
typedef struct tr_jinja_loop {
    const tr_jinja_list *list;
    size_t index; // from 0
} tr_jinja_loop;

// A macro where it is defined: its body sees what is defined around it.
typedef struct tr_jinja_macro {
    const struct tr_jinja_node *node;
    struct tr_jinja_scope *scope;
} tr_jinja_macro;

typedef struct tr_jinja_method {
    const tr_jinja_value *self;
    const struct tr_jinja_function *function;
} tr_jinja_method;

struct tr_jinja_value {
    tr_jinja_kind kind;
    bool safe; // a text marked by the filter `safe`: others are escaped when added
    union {
        bool truth;
        int64_t integer;
        double real;
        tr_jinja_string text;
        tr_jinja_list *list;
        tr_jinja_dict *dict;
        const tr_jinja_loop *loop;
        const tr_jinja_macro *macro;
        tr_jinja_method method;
        const struct tr_jinja_function *global;
    } as;
};

typedef struct tr_jinja_entry {
    tr_jinja_value key, value;
} tr_jinja_entry;

static inline tr_jinja_value tr__jinja_none(void) {
    return (tr_jinja_value){.kind = TR_JINJA_NONE};
}

static inline tr_jinja_value tr__jinja_bool(bool truth) {
    return (tr_jinja_value){.kind = TR_JINJA_BOOL, .as.truth = truth};
}

static inline tr_jinja_value tr__jinja_integer(int64_t integer) {
    return (tr_jinja_value){.kind = TR_JINJA_INTEGER, .as.integer = integer};
}

static inline tr_jinja_value tr__jinja_real(double real) {
    return (tr_jinja_value){.kind = TR_JINJA_REAL, .as.real = real};
}

static inline tr_jinja_value tr__jinja_text(const char *bytes, size_t count) {
    return (tr_jinja_value){.kind = TR_JINJA_TEXT, .as.text = {bytes, count}};
}

static inline tr_jinja_value tr__jinja_undefined(tr_jinja_string name) {
    return (tr_jinja_value){.kind = TR_JINJA_UNDEFINED, .as.text = name};
}

tr_jinja_extent tr__jinja_extent(const tr_jinja_value *value);
// Lists, tuples, ranges, views, generators: what has `as.list`.
bool tr__jinja_is_series(const tr_jinja_value *value);
// Lists, tuples, ranges: what has a length, an order, and items at places.
bool tr__jinja_is_sequence(const tr_jinja_value *value);
// What Python takes as a key of a dictionary.
bool tr__jinja_is_key(const tr_jinja_value *value);
// Booleans count as integers.
bool tr__jinja_is_integer(const tr_jinja_value *value);
bool tr__jinja_is_number(const tr_jinja_value *value);
int64_t tr__jinja_to_integer(const tr_jinja_value *value); // of an integer or boolean
double tr__jinja_to_real(const tr_jinja_value *value);     // of a number

bool tr__jinja_is_true(const tr_jinja_value *value);
bool tr__jinja_equal(const tr_jinja_value *a, const tr_jinja_value *b);
bool tr__jinja_text_is(tr_jinja_string text, const char *word);
bool tr__jinja_same_text(tr_jinja_string a, tr_jinja_string b);
// Below 0, 0, above 0. false: the two cannot be compared.
bool tr__jinja_order(const tr_jinja_value *a, const tr_jinja_value *b, int *order);
// The entry of a key; NULL: there is none.
tr_jinja_entry *tr__jinja_dict_find(const tr_jinja_dict *dict,
                                    const tr_jinja_value *key);
// "str", "list", ... as Python calls it.
const char *tr__jinja_kind_name(tr_jinja_kind kind);

#endif
