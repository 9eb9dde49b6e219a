// Methods of texts, dictionaries and lists.
#include "jinja/function.h"
#include "jinja/strings.h"
#include "jinja/text_case.h"

#include <string.h>

static tr_jinja_value of_bool(bool truth) {
    return tr__jinja_bool(truth);
}

// ---- texts: blanks and parts

static tr_jinja_value strip(tr_jinja_run *run, const tr_jinja_value *self,
                            const tr_jinja_bound *arguments, bool left, bool right) {
    tr_jinja_value chars = tr__jinja_or(arguments, 0, tr__jinja_none());
    return tr__jinja_strip(run, self->as.text, &chars, left, right);
}

static tr_jinja_value text_strip(tr_jinja_run *run, const tr_jinja_value *self,
                                 const tr_jinja_bound *arguments) {
    return strip(run, self, arguments, true, true);
}

static tr_jinja_value text_lstrip(tr_jinja_run *run, const tr_jinja_value *self,
                                  const tr_jinja_bound *arguments) {
    return strip(run, self, arguments, true, false);
}

static tr_jinja_value text_rstrip(tr_jinja_run *run, const tr_jinja_value *self,
                                  const tr_jinja_bound *arguments) {
    return strip(run, self, arguments, false, true);
}

static tr_jinja_value split(tr_jinja_run *run, const tr_jinja_value *self,
                            const tr_jinja_bound *arguments, bool from_right) {
    tr_jinja_value separator = tr__jinja_or(arguments, 0, tr__jinja_none());
    int64_t most = tr__jinja_integer_or(run, arguments, 1, -1);
    if (separator.kind == TR_JINJA_NONE) {
        return tr__jinja_split_blanks(run, self->as.text, most, from_right);
    }
    if (separator.kind != TR_JINJA_TEXT || separator.as.text.count == 0) {
        tr__jinja_fail(run, "split: a separator that is no text, or empty");
        return tr__jinja_none();
    }
    return tr__jinja_split(run, self->as.text, separator.as.text, most, from_right);
}

static tr_jinja_value text_split(tr_jinja_run *run, const tr_jinja_value *self,
                                 const tr_jinja_bound *arguments) {
    return split(run, self, arguments, false);
}

static tr_jinja_value text_rsplit(tr_jinja_run *run, const tr_jinja_value *self,
                                  const tr_jinja_bound *arguments) {
    return split(run, self, arguments, true);
}

static tr_jinja_value text_splitlines(tr_jinja_run *run, const tr_jinja_value *self,
                                      const tr_jinja_bound *arguments) {
    (void)arguments;
    return tr__jinja_split_lines(run, self->as.text);
}

// ---- texts: what is in them

static bool begins(tr_jinja_string text, tr_jinja_string with, bool at_end) {
    size_t from = at_end ? text.count - with.count : 0;
    return with.count <= text.count &&
           (with.count == 0 || memcmp(text.bytes + from, with.bytes, with.count) == 0);
}

// A text, or a tuple of texts.
static tr_jinja_value begins_with(tr_jinja_run *run, const tr_jinja_value *self,
                                  const tr_jinja_value *with, bool at_end) {
    if (with->kind == TR_JINJA_TEXT) {
        return of_bool(begins(self->as.text, with->as.text, at_end));
    }
    bool any = false;
    if (with->kind != TR_JINJA_TUPLE) {
        tr__jinja_fail(run, "startswith and endswith need a text or a tuple of texts");
        return of_bool(false);
    }
    for (size_t i = 0; i < with->as.list->count && !any; i++) {
        const tr_jinja_value *one = &with->as.list->item[i];
        any = one->kind == TR_JINJA_TEXT && begins(self->as.text, one->as.text, at_end);
    }
    return of_bool(any);
}

static tr_jinja_value text_startswith(tr_jinja_run *run, const tr_jinja_value *self,
                                      const tr_jinja_bound *arguments) {
    return begins_with(run, self, &arguments->value[0], false);
}

static tr_jinja_value text_endswith(tr_jinja_run *run, const tr_jinja_value *self,
                                    const tr_jinja_bound *arguments) {
    return begins_with(run, self, &arguments->value[0], true);
}

static tr_jinja_value cut(tr_jinja_run *run, const tr_jinja_value *self,
                          const tr_jinja_bound *arguments, bool at_end) {
    tr_jinja_string text = self->as.text,
                    part = tr__jinja_text_or(run, arguments, 0, "");
    if (!begins(text, part, at_end)) {
        return *self;
    }
    return tr__jinja_of_string(at_end ? tr__jinja_part(text, 0, text.count - part.count)
                                      : tr__jinja_part(text, part.count, text.count));
}

static tr_jinja_value text_removeprefix(tr_jinja_run *run, const tr_jinja_value *self,
                                        const tr_jinja_bound *arguments) {
    return cut(run, self, arguments, false);
}

static tr_jinja_value text_removesuffix(tr_jinja_run *run, const tr_jinja_value *self,
                                        const tr_jinja_bound *arguments) {
    return cut(run, self, arguments, true);
}

static tr_jinja_value text_find(tr_jinja_run *run, const tr_jinja_value *self,
                                const tr_jinja_bound *arguments) {
    tr_jinja_string part = tr__jinja_text_or(run, arguments, 0, "");
    size_t at = 0;
    bool found = tr__jinja_search(run, self->as.text, part, 0, &at);
    return tr__jinja_integer(
        found ? tr__jinja_length(tr__jinja_part(self->as.text, 0, at)) : -1);
}

static tr_jinja_value text_count(tr_jinja_run *run, const tr_jinja_value *self,
                                 const tr_jinja_bound *arguments) {
    tr_jinja_string part = tr__jinja_text_or(run, arguments, 0, "");
    int64_t count = 0;
    if (part.count == 0) {
        return tr__jinja_integer(tr__jinja_length(self->as.text) + 1);
    }
    for (size_t at = 0; tr__jinja_search(run, self->as.text, part, at, &at);
         at += part.count) {
        count++;
    }
    return tr__jinja_integer(count);
}

static tr_jinja_value text_isdigit(tr_jinja_run *run, const tr_jinja_value *self,
                                   const tr_jinja_bound *arguments) {
    (void)arguments;
    tr_jinja_string text = self->as.text;
    bool digits = text.count > 0;
    for (size_t i = 0; i < text.count; i++) {
        if ((unsigned char)text.bytes[i] >= 0x80) {
            tr__jinja_fail(run, "isdigit: letters beyond ASCII are not supported");
        }
        digits = digits && text.bytes[i] >= '0' && text.bytes[i] <= '9';
    }
    return of_bool(digits);
}

// ---- texts: others

static tr_jinja_value text_replace(tr_jinja_run *run, const tr_jinja_value *self,
                                   const tr_jinja_bound *arguments) {
    tr_jinja_string from = tr__jinja_text_or(run, arguments, 0, "");
    tr_jinja_string to = tr__jinja_text_or(run, arguments, 1, "");
    int64_t most = tr__jinja_integer_or(run, arguments, 2, -1);
    return tr__jinja_replace(run, self->as.text, from, to, most);
}

static tr_jinja_value text_join(tr_jinja_run *run, const tr_jinja_value *self,
                                const tr_jinja_bound *arguments) {
    const tr_jinja_list *list = tr__jinja_iterate(run, &arguments->value[0]);
    tr_jinja_buffer to = {0};
    for (size_t i = 0; list && i < list->count && run->status == TR_OK; i++) {
        if (list->item[i].kind != TR_JINJA_TEXT) {
            tr__jinja_fail(run, "join: a value of type %s",
                           tr__jinja_kind_name(list->item[i].kind));
        }
        tr__jinja_add(run, &to, i > 0 ? self->as.text : (tr_jinja_string){0});
        tr__jinja_print(run, &to, &list->item[i]);
    }
    return tr__jinja_text(to.bytes ? to.bytes : "", to.count);
}

static tr_jinja_value text_lower(tr_jinja_run *run, const tr_jinja_value *self,
                                 const tr_jinja_bound *arguments) {
    (void)arguments;
    return tr__jinja_change_case(run, self->as.text, TR_CASE_LOWER);
}

static tr_jinja_value text_upper(tr_jinja_run *run, const tr_jinja_value *self,
                                 const tr_jinja_bound *arguments) {
    (void)arguments;
    return tr__jinja_change_case(run, self->as.text, TR_CASE_UPPER);
}

static tr_jinja_value text_title(tr_jinja_run *run, const tr_jinja_value *self,
                                 const tr_jinja_bound *arguments) {
    (void)arguments;
    return tr__jinja_change_case(run, self->as.text, TR_CASE_TITLE);
}

static tr_jinja_value text_capitalize(tr_jinja_run *run, const tr_jinja_value *self,
                                      const tr_jinja_bound *arguments) {
    (void)arguments;
    return tr__jinja_change_case(run, self->as.text, TR_CASE_CAPITAL);
}

static tr_jinja_value text_format(tr_jinja_run *run, const tr_jinja_value *self,
                                  const tr_jinja_arguments *arguments) {
    return tr__jinja_format(run, self->as.text, arguments);
}

// ---- dictionaries

static tr_jinja_value dict_get(tr_jinja_run *run, const tr_jinja_value *self,
                               const tr_jinja_bound *arguments) {
    tr__jinja_charge(run, (int64_t)self->as.dict->count / 8);
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

static const tr_jinja_function of_text[] = {
    {.name = "strip", .call = text_strip, .parameter = {"chars"}},
    {.name = "lstrip", .call = text_lstrip, .parameter = {"chars"}},
    {.name = "rstrip", .call = text_rstrip, .parameter = {"chars"}},
    {.name = "split", .call = text_split, .parameter = {"sep", "maxsplit"}},
    {.name = "rsplit", .call = text_rsplit, .parameter = {"sep", "maxsplit"}},
    {.name = "splitlines", .call = text_splitlines},
    {.name = "startswith", .call = text_startswith, .parameter = {"a"}, .needed = 1},
    {.name = "endswith", .call = text_endswith, .parameter = {"a"}, .needed = 1},
    {.name = "removeprefix",
     .call = text_removeprefix,
     .parameter = {"a"},
     .needed = 1},
    {.name = "removesuffix",
     .call = text_removesuffix,
     .parameter = {"a"},
     .needed = 1},
    {.name = "find", .call = text_find, .parameter = {"a"}, .needed = 1},
    {.name = "count", .call = text_count, .parameter = {"a"}, .needed = 1},
    {.name = "isdigit", .call = text_isdigit},
    {.name = "replace",
     .call = text_replace,
     .parameter = {"old", "new", "count"},
     .needed = 2},
    {.name = "join", .call = text_join, .parameter = {"a"}, .needed = 1},
    {.name = "lower", .call = text_lower},
    {.name = "upper", .call = text_upper},
    {.name = "title", .call = text_title},
    {.name = "capitalize", .call = text_capitalize},
    {.name = "format", .any = text_format},
    {.name = "casefold"},
    {.name = "center"},
    {.name = "encode"},
    {.name = "expandtabs"},
    {.name = "format_map"},
    {.name = "index"},
    {.name = "isalnum"},
    {.name = "isalpha"},
    {.name = "isascii"},
    {.name = "isdecimal"},
    {.name = "isidentifier"},
    {.name = "islower"},
    {.name = "isnumeric"},
    {.name = "isprintable"},
    {.name = "isspace"},
    {.name = "istitle"},
    {.name = "isupper"},
    {.name = "ljust"},
    {.name = "maketrans"},
    {.name = "partition"},
    {.name = "rfind"},
    {.name = "rindex"},
    {.name = "rjust"},
    {.name = "rpartition"},
    {.name = "swapcase"},
    {.name = "translate"},
    {.name = "zfill"},
};

static const tr_jinja_function of_dict[] = {
    {.name = "get", .call = dict_get, .parameter = {"key", "default"}, .needed = 1},
    {.name = "items", .call = dict_items},
    {.name = "keys", .call = dict_keys},
    {.name = "values", .call = dict_values},
    {.name = "copy", .call = copy},
    {.name = "fromkeys"},
};

static const tr_jinja_function of_list[] = {
    {.name = "count", .call = list_count, .parameter = {"a"}, .needed = 1},
    {.name = "index", .call = list_index, .parameter = {"a"}, .needed = 1},
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
        return tr__jinja_row(of_text, sizeof of_text / sizeof *of_text, name);
    }
    if (of == TR_JINJA_DICT) {
        *forbidden = is_one_of(name, dict_changes);
        return tr__jinja_row(of_dict, sizeof of_dict / sizeof *of_dict, name);
    }
    if (of == TR_JINJA_LOOP) {
        return tr__jinja_row(of_loop, 1, name);
    }
    if (of == TR_JINJA_LIST || of == TR_JINJA_TUPLE) {
        bool list = of == TR_JINJA_LIST;
        *forbidden = list && is_one_of(name, list_changes);
        return tr__jinja_row(of_list, list ? 3 : 2, name);
    }
    return NULL;
}
