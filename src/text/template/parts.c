// What is inside of a value: items, attributes, slices.
#include "text/template/run.h"

#include "text/template/function.h"

#include <string.h>

// ---- by name

// The value is kept: the method outlives the expression that names it.
static tr_jinja_value find_method(tr_jinja_run *run, const tr_jinja_value *of,
                                  tr_jinja_string name) {
    bool forbidden = false;
    const tr_jinja_function *method = tr__jinja_method(of->kind, name, &forbidden);
    if (!method) {
        return tr__jinja_property(run, of, name);
    }
    tr_jinja_value *self = tr__jinja_take(run, 1, sizeof *self);
    if (!self) {
        return tr__jinja_none();
    }
    *self = *of;
    return (tr_jinja_value){.kind = TR_JINJA_METHOD, .as.method = {self, method}};
}

static tr_jinja_value at_place(const tr_jinja_loop *loop, size_t index,
                               tr_jinja_string name) {
    return index < loop->list->count ? loop->list->item[index]
                                     : tr__jinja_undefined(name);
}

static tr_jinja_value loop_attribute(tr_jinja_run *run, const tr_jinja_value *of,
                                     tr_jinja_string name) {
    const tr_jinja_loop *loop = of->as.loop;
    int64_t index = (int64_t)loop->index, count = (int64_t)loop->list->count;
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {{"index", index + 1},
                   {"index0", index},
                   {"revindex", count - index},
                   {"revindex0", count - index - 1},
                   {"length", count},
                   {"depth", 1},
                   {"depth0", 0}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (tr__jinja_text_is(name, numbers[i].name)) {
            return tr__jinja_integer(numbers[i].value);
        }
    }
    if (tr__jinja_text_is(name, "first") || tr__jinja_text_is(name, "last")) {
        return tr__jinja_bool(name.bytes[0] == 'f' ? index == 0 : index == count - 1);
    }
    if (tr__jinja_text_is(name, "previtem")) {
        return at_place(loop, loop->index - 1, name); // of the first: not a place
    }
    if (tr__jinja_text_is(name, "nextitem")) {
        return at_place(loop, loop->index + 1, name);
    }
    tr_jinja_value method = find_method(run, of, name);
    if (method.kind != TR_JINJA_METHOD) {
        tr__jinja_fail(run, "loop.%.*s is not supported", (int)name.count, name.bytes);
    }
    return method;
}

static tr_jinja_value fail_undefined(tr_jinja_run *run, const tr_jinja_value *of,
                                     tr_jinja_string name) {
    tr__jinja_fail(run, "'%.*s' is undefined, so it has no '%.*s'",
                   (int)of->as.text.count, of->as.text.bytes ? of->as.text.bytes : "",
                   (int)(name.count < 100 ? name.count : 100), name.bytes);
    return tr__jinja_none();
}

static tr_jinja_value dict_item(tr_jinja_run *run, const tr_jinja_dict *dict,
                                const tr_jinja_value *key, bool *found) {
    tr__jinja_charge(run, (int64_t)dict->count / 8);
    const tr_jinja_entry *entry = tr__jinja_dict_find(dict, key);
    *found = entry != NULL;
    return entry ? entry->value : tr__jinja_none();
}

// An attribute comes before an item of the same name: x.items is the method.
tr_jinja_value tr__jinja_attribute(tr_jinja_run *run, const tr_jinja_value *of,
                                   tr_jinja_string name) {
    bool found = false, forbidden = false;
    if (run->status != TR_OK) {
        return tr__jinja_none();
    }
    if (of->kind == TR_JINJA_UNDEFINED) {
        return fail_undefined(run, of, name);
    }
    if (of->kind == TR_JINJA_LOOP) {
        return loop_attribute(run, of, name);
    }
    tr_jinja_value value = of->kind == TR_JINJA_NAMESPACE ? tr__jinja_undefined(name)
                                                          : find_method(run, of, name);
    bool method = value.kind == TR_JINJA_METHOD;
    tr__jinja_method(of->kind, name, &forbidden);
    if (!method && !forbidden &&
        (of->kind == TR_JINJA_DICT || of->kind == TR_JINJA_NAMESPACE)) {
        tr_jinja_value key = tr__jinja_of_string(name);
        tr_jinja_value item = dict_item(run, of->as.dict, &key, &found);
        return found ? item : value;
    }
    return value;
}

// ---- by key

// The element at an index, from the end where it is below 0; false: there is none.
static bool place(int64_t index, int64_t count, int64_t *at) {
    *at = index < 0 ? index + count : index;
    return *at >= 0 && *at < count;
}

static tr_jinja_value text_item(tr_jinja_string text, int64_t index, bool *found) {
    int64_t at = 0;
    *found = place(index, tr__jinja_length(text), &at);
    if (!*found) {
        return tr__jinja_none();
    }
    size_t begin = tr__jinja_byte_of(text, at), length = 0;
    tr__jinja_character(text, begin, &length);
    return tr__jinja_of_string(tr__jinja_part(text, begin, begin + length));
}

// What is cut out of a text that is safe is safe.
static tr_jinja_value as_safe(tr_jinja_value value, const tr_jinja_value *of) {
    value.safe = of->kind == TR_JINJA_TEXT && of->safe;
    return value;
}

static tr_jinja_value indexed(tr_jinja_run *run, const tr_jinja_value *of,
                              int64_t index, bool *found) {
    int64_t at = 0;
    if (of->kind == TR_JINJA_TEXT) {
        tr__jinja_charge(run, (int64_t)of->as.text.count / 16);
        return as_safe(text_item(of->as.text, index, found), of);
    }
    *found =
        tr__jinja_is_sequence(of) && place(index, (int64_t)of->as.list->count, &at);
    return *found ? of->as.list->item[at] : tr__jinja_none();
}

tr_jinja_value tr__jinja_item(tr_jinja_run *run, const tr_jinja_value *of,
                              const tr_jinja_value *key) {
    bool found = false;
    tr_jinja_string name =
        key->kind == TR_JINJA_TEXT ? key->as.text : (tr_jinja_string){"item", 4};
    tr_jinja_value value = tr__jinja_none();
    if (run->status != TR_OK) {
        return value;
    }
    if (of->kind == TR_JINJA_UNDEFINED) {
        return fail_undefined(run, of, name);
    }
    if (of->kind == TR_JINJA_DICT) {
        value = dict_item(run, of->as.dict, key, &found);
    } else if (tr__jinja_is_integer(key)) {
        value = indexed(run, of, tr__jinja_to_integer(key), &found);
    }
    if (found) {
        return value;
    }
    if (key->kind != TR_JINJA_TEXT) {
        return tr__jinja_undefined(name);
    }
    return of->kind == TR_JINJA_DICT ? find_method(run, of, name)
                                     : tr__jinja_attribute(run, of, name);
}

// ---- slices

typedef struct range {
    int64_t from, to, step;
} range;

static bool read_bound(tr_jinja_run *run, const tr_jinja_value *bound, int64_t *value) {
    bool given = bound->kind != TR_JINJA_NONE;
    if (given && !tr__jinja_is_integer(bound)) {
        tr__jinja_fail(run, "a slice's bound is of type %s",
                       tr__jinja_kind_name(bound->kind));
    } else if (given) {
        *value = tr__jinja_to_integer(bound);
    }
    return given;
}

static int64_t clamp(int64_t value, int64_t count, int64_t least, int64_t most) {
    value = value < 0 ? value + count : value;
    return value < least ? least : value > most ? most : value;
}

static range find_range(tr_jinja_run *run, const tr_jinja_value bound[3],
                        int64_t count) {
    range r = {.step = 1};
    read_bound(run, &bound[2], &r.step);
    if (r.step == 0 || r.step > INT32_MAX || r.step < -INT32_MAX) {
        tr__jinja_fail(run, "a slice with a step of %lld", (long long)r.step);
        r.step = 1;
    }
    int64_t least = r.step > 0 ? 0 : -1, most = r.step > 0 ? count : count - 1;
    r.from = read_bound(run, &bound[0], &r.from) ? clamp(r.from, count, least, most)
             : r.step > 0                        ? 0
                                                 : count - 1;
    r.to = read_bound(run, &bound[1], &r.to) ? clamp(r.to, count, least, most)
           : r.step > 0                      ? count
                                             : -1;
    return r;
}

static tr_jinja_value slice_text(tr_jinja_run *run, tr_jinja_string text,
                                 const tr_jinja_value bound[3]) {
    tr__jinja_charge(run, (int64_t)text.count / 16);
    range r = find_range(run, bound, tr__jinja_length(text));
    if (r.step == 1) {
        size_t from = tr__jinja_byte_of(text, r.from), to = from;
        if (r.to > r.from) {
            to += tr__jinja_byte_of(tr__jinja_part(text, from, text.count),
                                    r.to - r.from);
        }
        return tr__jinja_of_string(tr__jinja_part(text, from, to));
    }
    tr_jinja_value whole = tr__jinja_of_string(text);
    const tr_jinja_list *all = tr__jinja_iterate(run, &whole);
    tr_jinja_buffer to = {0};
    for (int64_t i = r.from; all && (r.step > 0 ? i < r.to : i > r.to); i += r.step) {
        tr__jinja_add(run, &to, all->item[i].as.text);
    }
    return tr__jinja_text(to.bytes ? to.bytes : "", to.count);
}

static tr_jinja_value slice_range(tr_jinja_run *run, const tr_jinja_list *of,
                                  const range *r) {
    int64_t start = 0, stop = 0, step = 0;
    if (__builtin_mul_overflow(r->from, of->step, &start) ||
        __builtin_add_overflow(of->start, start, &start) ||
        __builtin_mul_overflow(r->to, of->step, &stop) ||
        __builtin_add_overflow(of->start, stop, &stop) ||
        __builtin_mul_overflow(r->step, of->step, &step)) {
        tr__jinja_fail(run, "integers of over 64 bits are not supported");
        return tr__jinja_none();
    }
    return tr__jinja_make_range(run, start, stop, step);
}

static tr_jinja_value slice_list(tr_jinja_run *run, const tr_jinja_value *of,
                                 const tr_jinja_value bound[3]) {
    const tr_jinja_list *list = of->as.list;
    range r = find_range(run, bound, (int64_t)list->count);
    if (of->kind == TR_JINJA_RANGE) {
        return slice_range(run, list, &r);
    }
    tr_jinja_value *item = tr__jinja_take(run, list->count + 1, sizeof *item);
    size_t count = 0;
    for (int64_t i = r.from; item && (r.step > 0 ? i < r.to : i > r.to); i += r.step) {
        item[count++] = list->item[i];
    }
    return tr__jinja_make_list(run, of->kind, item, count);
}

tr_jinja_value tr__jinja_slice(tr_jinja_run *run, const tr_jinja_value *of,
                               const tr_jinja_value bound[3]) {
    if (run->status != TR_OK) {
        return tr__jinja_none();
    }
    if (of->kind == TR_JINJA_TEXT) {
        return as_safe(slice_text(run, of->as.text, bound), of);
    }
    if (tr__jinja_is_sequence(of)) {
        return slice_list(run, of, bound);
    }
    if (of->kind == TR_JINJA_UNDEFINED) {
        return fail_undefined(run, of, (tr_jinja_string){"slice", 5});
    }
    tr__jinja_fail(run, "a %s has no slices", tr__jinja_kind_name(of->kind));
    return tr__jinja_none();
}

// ---- in

bool tr__jinja_contains(tr_jinja_run *run, const tr_jinja_value *whole,
                        const tr_jinja_value *part) {
    if (run->status != TR_OK) {
        return false;
    }
    tr__jinja_charge(run, tr__jinja_extent(whole).weight / 16);
    if (whole->kind == TR_JINJA_TEXT) {
        if (part->kind != TR_JINJA_TEXT) {
            tr__jinja_fail(run, "in: a text contains texts only, not a %s",
                           tr__jinja_kind_name(part->kind));
            return false;
        }
        tr_jinja_string text = whole->as.text, sought = part->as.text;
        return sought.count == 0 ||
               (text.count > 0 &&
                memmem(text.bytes, text.count, sought.bytes, sought.count));
    }
    if (whole->kind == TR_JINJA_DICT) {
        if (!tr__jinja_is_key(part)) {
            tr__jinja_fail(run, "in: a %s cannot be a key",
                           tr__jinja_kind_name(part->kind));
        }
        return tr__jinja_dict_find(whole->as.dict, part) != NULL;
    }
    const tr_jinja_list *list = tr__jinja_iterate(run, whole);
    bool found = false;
    size_t at = 0;
    if (whole->kind == TR_JINJA_VIEW && !tr__jinja_is_key(part)) {
        tr__jinja_fail(run, "in: a %s cannot be a key",
                       tr__jinja_kind_name(part->kind));
    }
    while (list && !found && at < list->count) {
        found = tr__jinja_same(run, &list->item[at++], part);
    }
    if (found && whole->kind == TR_JINJA_GENERATOR) {
        tr__jinja_give_back(whole, at);
    }
    return found;
}
