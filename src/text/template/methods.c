// Methods of dictionaries, lists and loops.
#include "text/template/function.h"
#include "text/template/strings.h"

#include <string.h>

// ---- dictionaries

static tr_jinja_value dict_get(tr_jinja_run *run, const tr_jinja_value *self,
                               const tr_jinja_bound *arguments) {
    tr__jinja_charge(run, (int64_t)self->as.dict->count / 8);
    if (!tr__jinja_is_key(&arguments->value[0])) {
        tr__jinja_fail(run, "get: a %s cannot be a key",
                       tr__jinja_kind_name(arguments->value[0].kind));
    }
    const tr_jinja_entry *entry =
        tr__jinja_dict_find(self->as.dict, &arguments->value[0]);
    return entry ? entry->value : tr__jinja_or(arguments, 1, tr__jinja_none());
}

static tr_jinja_value dict_view(tr_jinja_run *run, const tr_jinja_dict *dict, bool keys,
                                bool values) {
    tr_jinja_value *item = tr__jinja_take(run, dict->count + 1, sizeof *item);
    for (size_t i = 0; item && i < dict->count; i++) {
        const tr_jinja_entry *e = &dict->entry[i];
        item[i] = keys && values ? tr__jinja_make_pair(run, e->key, e->value)
                  : keys         ? e->key
                                 : e->value;
    }
    return tr__jinja_make_list(run, TR_JINJA_VIEW, item, dict->count);
}

static tr_jinja_value dict_items(tr_jinja_run *run, const tr_jinja_value *self,
                                 const tr_jinja_bound *arguments) {
    (void)arguments;
    return dict_view(run, self->as.dict, true, true);
}

static tr_jinja_value dict_keys(tr_jinja_run *run, const tr_jinja_value *self,
                                const tr_jinja_bound *arguments) {
    (void)arguments;
    return dict_view(run, self->as.dict, true, false);
}

static tr_jinja_value dict_values(tr_jinja_run *run, const tr_jinja_value *self,
                                  const tr_jinja_bound *arguments) {
    (void)arguments;
    return dict_view(run, self->as.dict, false, true);
}

static tr_jinja_value copy(tr_jinja_run *run, const tr_jinja_value *self,
                           const tr_jinja_bound *arguments) {
    (void)run;
    (void)arguments;
    return *self; // nothing can change it
}

// ---- lists

static tr_jinja_value list_count(tr_jinja_run *run, const tr_jinja_value *self,
                                 const tr_jinja_bound *arguments) {
    int64_t count = 0;
    for (size_t i = 0; i < self->as.list->count && run->status == TR_OK; i++) {
        count += tr__jinja_same(run, &self->as.list->item[i], &arguments->value[0]);
    }
    return tr__jinja_integer(count);
}

static tr_jinja_value list_index(tr_jinja_run *run, const tr_jinja_value *self,
                                 const tr_jinja_bound *arguments) {
    for (size_t i = 0; i < self->as.list->count && run->status == TR_OK; i++) {
        if (tr__jinja_same(run, &self->as.list->item[i], &arguments->value[0])) {
            return tr__jinja_integer((int64_t)i);
        }
    }
    tr__jinja_fail(run, "index: the value is not in the list");
    return tr__jinja_none();
}

// ---- loops

static tr_jinja_value loop_cycle(tr_jinja_run *run, const tr_jinja_value *self,
                                 const tr_jinja_arguments *arguments) {
    if (arguments->count == 0) {
        tr__jinja_fail(run, "cycle: no values");
        return tr__jinja_none();
    }
    return arguments->value[self->as.loop->index % arguments->count];
}

// ---- tables. Rows without a function are methods that Python has.

static const tr_jinja_function of_dict[] = {
    {.name = "get", .call = dict_get, .parameter = {"(key)", "(default)"}, .needed = 1},
    {.name = "items", .call = dict_items},
    {.name = "keys", .call = dict_keys},
    {.name = "values", .call = dict_values},
    {.name = "copy", .call = copy},
    {.name = "fromkeys"},
};

static const tr_jinja_function of_list[] = {
    {.name = "count", .call = list_count, .parameter = {"(a)"}, .needed = 1},
    {.name = "index", .call = list_index, .parameter = {"(a)"}, .needed = 1},
    {.name = "copy", .call = copy},
};

static const tr_jinja_function of_loop[] = {
    {.name = "cycle", .any = loop_cycle},
};

static bool is_one_of(tr_jinja_string name, const char *const *words) {
    for (; *words; words++) {
        if (tr__jinja_text_is(name, *words)) {
            return true;
        }
    }
    return false;
}

const tr_jinja_function *tr__jinja_method(tr_jinja_kind of, tr_jinja_string name,
                                          bool *forbidden) {
    static const char *const dict_changes[] = {"clear",      "pop",    "popitem",
                                               "setdefault", "update", NULL};
    static const char *const list_changes[] = {"append", "clear", "extend",
                                               "insert", "pop",   "reverse",
                                               "remove", "sort",  NULL};
    if (of == TR_JINJA_TEXT) {
        return tr__jinja_text_method(name);
    }
    if (of == TR_JINJA_DICT) {
        *forbidden = is_one_of(name, dict_changes);
        return tr__jinja_row(of_dict, sizeof of_dict / sizeof *of_dict, name);
    }
    if (of == TR_JINJA_LOOP) {
        return tr__jinja_row(of_loop, 1, name);
    }
    if (of == TR_JINJA_LIST || of == TR_JINJA_TUPLE || of == TR_JINJA_RANGE) {
        bool list = of == TR_JINJA_LIST;
        *forbidden = list && is_one_of(name, list_changes);
        return tr__jinja_row(of_list, list ? 3 : 2, name);
    }
    return NULL;
}
