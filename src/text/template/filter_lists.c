#include "text/template/filter_lists.h"

#include "text/template/text_case.h"

#include <string.h>

// ---- by an attribute

static bool all_digits(tr_jinja_string text) {
    bool all = text.count > 0 && text.count < 10;
    for (size_t i = 0; i < text.count; i++) {
        all = all && text.bytes[i] >= '0' && text.bytes[i] <= '9';
    }
    return all;
}

static tr_jinja_value key_of(tr_jinja_string part) {
    int64_t number = 0;
    if (!all_digits(part)) {
        return tr__jinja_of_string(part);
    }
    for (size_t i = 0; i < part.count; i++) {
        number = 10 * number + (part.bytes[i] - '0');
    }
    return tr__jinja_integer(number);
}

tr_jinja_value tr__jinja_by_path(tr_jinja_run *run, const tr_jinja_value *item,
                                 const tr_jinja_value *path) {
    tr_jinja_value value = *item;
    if (path->kind != TR_JINJA_TEXT) {
        return tr__jinja_item(run, item, path);
    }
    tr_jinja_string rest = path->as.text;
    for (bool more = true; more && run->status == TR_OK;) {
        const char *dot = rest.count > 0 ? memchr(rest.bytes, '.', rest.count) : NULL;
        size_t end = dot ? (size_t)(dot - rest.bytes) : rest.count;
        tr_jinja_value key = key_of(tr__jinja_part(rest, 0, end));
        value = tr__jinja_item(run, &value, &key);
        more = dot != NULL;
        rest = more ? tr__jinja_part(rest, end + 1, rest.count) : rest;
    }
    return value;
}

// ---- select, reject

// The arguments behind the first `count`.
static tr_jinja_arguments behind(const tr_jinja_arguments *arguments, size_t count) {
    tr_jinja_arguments rest = *arguments;
    rest.value += count;
    rest.count -= count;
    return rest;
}

// Does the test hold that the arguments name? Without one: is the value true?
static bool passes(tr_jinja_run *run, const tr_jinja_value *value,
                   const tr_jinja_arguments *arguments) {
    if (arguments->count == 0) {
        return tr__jinja_is_true(value);
    }
    tr_jinja_string name = arguments->value[0].as.text;
    const tr_jinja_function *test =
        arguments->value[0].kind == TR_JINJA_TEXT ? tr__jinja_test(name) : NULL;
    if (!test) {
        tr__jinja_fail(run, "select and reject: a test that is not supported");
        return false;
    }
    tr_jinja_arguments rest = behind(arguments, 1);
    tr_jinja_value holds = tr__jinja_call(run, test, value, &rest);
    return tr__jinja_is_true(&holds);
}

typedef struct choice {
    bool wanted; // of the test
    const tr_jinja_value *attribute;
} choice;

// The items of what is true; of anything else none.
static const tr_jinja_list *items_if_any(tr_jinja_run *run,
                                         const tr_jinja_value *value) {
    tr_jinja_value none = tr__jinja_undefined((tr_jinja_string){"", 0});
    return tr__jinja_iterate(run, tr__jinja_is_true(value) ? value : &none);
}

static tr_jinja_value choose(tr_jinja_run *run, const tr_jinja_value *self,
                             const choice *by, const tr_jinja_arguments *arguments) {
    const tr_jinja_list *list = items_if_any(run, self);
    tr_jinja_value *item =
        tr__jinja_take(run, (list ? list->count : 0) + 1, sizeof *item);
    size_t count = 0;
    for (size_t i = 0; list && item && i < list->count && run->status == TR_OK; i++) {
        tr_jinja_value value =
            by->attribute ? tr__jinja_by_path(run, &list->item[i], by->attribute)
                          : list->item[i];
        if (passes(run, &value, arguments) == by->wanted) {
            item[count++] = list->item[i];
        }
    }
    return tr__jinja_make_list(run, TR_JINJA_GENERATOR, item, count);
}

static tr_jinja_value choose_by_attribute(tr_jinja_run *run, const tr_jinja_value *self,
                                          bool wanted,
                                          const tr_jinja_arguments *arguments) {
    if (arguments->count == 0) {
        tr__jinja_fail(run, "selectattr and rejectattr need an attribute");
        return tr__jinja_none();
    }
    tr_jinja_arguments rest = behind(arguments, 1);
    choice by = {wanted, &arguments->value[0]};
    return choose(run, self, &by, &rest);
}

tr_jinja_value tr__jinja_select(tr_jinja_run *run, const tr_jinja_value *self,
                                const tr_jinja_arguments *arguments) {
    return choose(run, self, &(choice){true, NULL}, arguments);
}

tr_jinja_value tr__jinja_reject(tr_jinja_run *run, const tr_jinja_value *self,
                                const tr_jinja_arguments *arguments) {
    return choose(run, self, &(choice){false, NULL}, arguments);
}

tr_jinja_value tr__jinja_selectattr(tr_jinja_run *run, const tr_jinja_value *self,
                                    const tr_jinja_arguments *arguments) {
    return choose_by_attribute(run, self, true, arguments);
}

tr_jinja_value tr__jinja_rejectattr(tr_jinja_run *run, const tr_jinja_value *self,
                                    const tr_jinja_arguments *arguments) {
    return choose_by_attribute(run, self, false, arguments);
}

// ---- map

static const tr_jinja_value *named(const tr_jinja_arguments *arguments,
                                   const char *name) {
    for (size_t i = 0; i < arguments->named_count; i++) {
        if (tr__jinja_text_is(arguments->named[i].key.as.text, name)) {
            return &arguments->named[i].value;
        }
    }
    return NULL;
}

static tr_jinja_value map_one(tr_jinja_run *run, const tr_jinja_value *item,
                              const tr_jinja_arguments *arguments) {
    const tr_jinja_value *attribute = named(arguments, "attribute");
    if (attribute) {
        const tr_jinja_value *otherwise = named(arguments, "default");
        tr_jinja_value value = tr__jinja_by_path(run, item, attribute);
        return value.kind == TR_JINJA_UNDEFINED && otherwise ? *otherwise : value;
    }
    const tr_jinja_function *filter =
        arguments->count > 0 && arguments->value[0].kind == TR_JINJA_TEXT
            ? run->filter(arguments->value[0].as.text)
            : NULL;
    if (!filter) {
        tr__jinja_fail(run, "map: needs an attribute, or a filter that is supported");
        return tr__jinja_none();
    }
    tr_jinja_arguments rest = behind(arguments, 1);
    return tr__jinja_call(run, filter, item, &rest);
}

tr_jinja_value tr__jinja_map(tr_jinja_run *run, const tr_jinja_value *self,
                             const tr_jinja_arguments *arguments) {
    const tr_jinja_list *list = items_if_any(run, self);
    size_t count = list ? list->count : 0;
    tr_jinja_value *item = tr__jinja_take(run, count + 1, sizeof *item);
    for (size_t i = 0; item && i < count && run->status == TR_OK; i++) {
        item[i] = map_one(run, &list->item[i], arguments);
    }
    return tr__jinja_make_list(run, TR_JINJA_GENERATOR, item, count);
}

// ---- order

// What an item is ordered by: case does not count unless it is asked for.
static tr_jinja_value order_key(tr_jinja_run *run, tr_jinja_value value,
                                bool case_sensitive) {
    return value.kind == TR_JINJA_TEXT && !case_sensitive
               ? tr__jinja_change_case(run, value.as.text, TR_CASE_LOWER)
               : value;
}

static tr_jinja_entry *make_keys(tr_jinja_run *run, const tr_jinja_list *list,
                                 bool case_sensitive, const tr_jinja_value *attribute) {
    size_t count = list ? list->count : 0;
    tr_jinja_entry *entry = tr__jinja_take(run, count + 1, sizeof *entry);
    for (size_t i = 0; entry && i < count; i++) {
        tr_jinja_value key = attribute
                                 ? tr__jinja_by_path(run, &list->item[i], attribute)
                                 : list->item[i];
        entry[i] = (tr_jinja_entry){order_key(run, key, case_sensitive), list->item[i]};
    }
    return entry;
}

// By their keys, those of equal keys in the order they have: merges of runs.
static void sort_entries(tr_jinja_run *run, tr_jinja_entry *entry, size_t count,
                         bool reverse) {
    tr_jinja_entry *other = tr__jinja_take(run, count + 1, sizeof *other);
    for (size_t width = 1; other && width < count && run->status == TR_OK; width *= 2) {
        for (size_t begin = 0; begin < count; begin += 2 * width) {
            size_t a = begin, middle = begin + width < count ? begin + width : count;
            size_t b = middle, end = middle + width < count ? middle + width : count;
            for (size_t to = begin; to < end; to++) {
                int order = a < middle && b < end
                                ? tr__jinja_compare(run, &entry[a].key, &entry[b].key)
                                : 0;
                bool left =
                    b == end || (a < middle && (reverse ? order >= 0 : order <= 0));
                other[to] = left ? entry[a++] : entry[b++];
            }
        }
        memcpy(entry, other, count * sizeof *entry);
    }
}

static tr_jinja_value values_of(tr_jinja_run *run, const tr_jinja_entry *entry,
                                size_t count) {
    tr_jinja_value *item = tr__jinja_take(run, count + 1, sizeof *item);
    for (size_t i = 0; item && entry && i < count; i++) {
        item[i] = entry[i].value;
    }
    return tr__jinja_make_list(run, TR_JINJA_LIST, item, count);
}

// (reverse, case_sensitive, attribute)
tr_jinja_value tr__jinja_sort(tr_jinja_run *run, const tr_jinja_value *self,
                              const tr_jinja_bound *arguments) {
    const tr_jinja_list *list = tr__jinja_iterate(run, self);
    bool by = arguments->given[2] && arguments->value[2].kind != TR_JINJA_NONE;
    tr_jinja_entry *entry =
        make_keys(run, list, tr__jinja_truth_or(arguments, 1, false),
                  by ? &arguments->value[2] : NULL);
    if (!entry || !list || run->status != TR_OK) {
        return tr__jinja_none();
    }
    sort_entries(run, entry, list->count,
                 tr__jinja_integer_or(run, arguments, 0, 0) != 0);
    return values_of(run, entry, list->count);
}

// (case_sensitive, by, reverse)
tr_jinja_value tr__jinja_dictsort(tr_jinja_run *run, const tr_jinja_value *self,
                                  const tr_jinja_bound *arguments) {
    tr_jinja_string by = tr__jinja_text_or(run, arguments, 1, "key");
    if (self->kind != TR_JINJA_DICT) {
        tr__jinja_fail(run, "dictsort: a value of type %s",
                       tr__jinja_kind_name(self->kind));
        return tr__jinja_none();
    }
    const tr_jinja_dict *dict = self->as.dict;
    tr_jinja_entry *entry = tr__jinja_take(run, dict->count + 1, sizeof *entry);
    for (size_t i = 0; entry && i < dict->count; i++) {
        const tr_jinja_entry *e = &dict->entry[i];
        tr_jinja_value key = tr__jinja_text_is(by, "value") ? e->value : e->key;
        entry[i].key = order_key(run, key, tr__jinja_truth_or(arguments, 0, false));
        entry[i].value = tr__jinja_make_pair(run, e->key, e->value);
    }
    if (!entry || run->status != TR_OK) {
        return tr__jinja_none();
    }
    sort_entries(run, entry, dict->count,
                 tr__jinja_integer_or(run, arguments, 2, 0) != 0);
    return values_of(run, entry, dict->count);
}

// (case_sensitive, attribute)
tr_jinja_value tr__jinja_unique(tr_jinja_run *run, const tr_jinja_value *self,
                                const tr_jinja_bound *arguments) {
    const tr_jinja_list *list = tr__jinja_iterate(run, self);
    tr_jinja_entry *entry =
        make_keys(run, list, tr__jinja_truth_or(arguments, 0, false),
                  arguments->given[1] ? &arguments->value[1] : NULL);
    size_t count = 0;
    for (size_t i = 0; list && entry && i < list->count && run->status == TR_OK; i++) {
        bool seen = false;
        for (size_t j = 0; j < count && !seen; j++) {
            seen = tr__jinja_same(run, &entry[j].key, &entry[i].key);
        }
        if (!seen) {
            entry[count++] = entry[i];
        }
    }
    tr_jinja_value value = values_of(run, entry, count);
    if (value.kind == TR_JINJA_LIST) {
        value.kind = TR_JINJA_GENERATOR;
    }
    return value;
}

static tr_jinja_value extreme(tr_jinja_run *run, const tr_jinja_value *self,
                              const tr_jinja_bound *arguments, int sign) {
    const tr_jinja_list *list = tr__jinja_iterate(run, self);
    const tr_jinja_entry *entry =
        make_keys(run, list, tr__jinja_truth_or(arguments, 0, false),
                  arguments->given[1] ? &arguments->value[1] : NULL);
    size_t best = 0;
    if (!list || !entry || list->count == 0) {
        return tr__jinja_undefined((tr_jinja_string){"item", 4});
    }
    for (size_t i = 1; i < list->count && run->status == TR_OK; i++) {
        if (sign * tr__jinja_compare(run, &entry[i].key, &entry[best].key) > 0) {
            best = i;
        }
    }
    return entry[best].value;
}

tr_jinja_value tr__jinja_min(tr_jinja_run *run, const tr_jinja_value *self,
                             const tr_jinja_bound *arguments) {
    return extreme(run, self, arguments, -1);
}

tr_jinja_value tr__jinja_max(tr_jinja_run *run, const tr_jinja_value *self,
                             const tr_jinja_bound *arguments) {
    return extreme(run, self, arguments, 1);
}

// (attribute, start)
tr_jinja_value tr__jinja_sum(tr_jinja_run *run, const tr_jinja_value *self,
                             const tr_jinja_bound *arguments) {
    const tr_jinja_list *list = tr__jinja_iterate(run, self);
    tr_jinja_value sum = tr__jinja_or(arguments, 1, tr__jinja_integer(0));
    bool by = arguments->given[0] && arguments->value[0].kind != TR_JINJA_NONE;
    if (sum.kind == TR_JINJA_TEXT) {
        tr__jinja_fail(run, "sum: of texts there is none; use join");
    }
    for (size_t i = 0; list && i < list->count && run->status == TR_OK; i++) {
        tr_jinja_value one =
            by ? tr__jinja_by_path(run, &list->item[i], &arguments->value[0])
               : list->item[i];
        sum = tr__jinja_compute(run, (tr_jinja_string){"+", 1}, &sum, &one);
    }
    return sum;
}

tr_jinja_value tr__jinja_reverse(tr_jinja_run *run, const tr_jinja_value *self,
                                 const tr_jinja_bound *arguments) {
    (void)arguments;
    if (self->kind == TR_JINJA_TEXT) {
        const tr_jinja_value bound[3] = {tr__jinja_none(), tr__jinja_none(),
                                         tr__jinja_integer(-1)};
        return tr__jinja_slice(run, self, bound);
    }
    const tr_jinja_list *list = tr__jinja_iterate(run, self);
    size_t count = list ? list->count : 0;
    tr_jinja_value *item = tr__jinja_take(run, count + 1, sizeof *item);
    for (size_t i = 0; item && i < count; i++) {
        item[i] = list->item[count - 1 - i];
    }
    return tr__jinja_make_list(run, TR_JINJA_GENERATOR, item, count);
}
