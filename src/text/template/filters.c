// What stands behind a bar.
#include "text/template/filter_lists.h"
#include "text/template/numbers.h"
#include "text/template/percent.h"
#include "text/template/strings.h"
#include "text/template/text_case.h"
#include "text/template/tojson.h"

#include <string.h>

enum { INDENT_MAX = 64 };

// ---- texts

static tr_jinja_value string(tr_jinja_run *run, const tr_jinja_value *self,
                             const tr_jinja_bound *arguments) {
    (void)arguments;
    return self->kind == TR_JINJA_TEXT
               ? *self
               : tr__jinja_of_string(tr__jinja_to_text(run, self));
}

static tr_jinja_value safe(tr_jinja_run *run, const tr_jinja_value *self,
                           const tr_jinja_bound *arguments) {
    tr_jinja_value value = string(run, self, arguments);
    value.safe = true;
    return value;
}

static tr_jinja_value escape(tr_jinja_run *run, const tr_jinja_value *self,
                             const tr_jinja_bound *arguments) {
    tr_jinja_value value = string(run, self, arguments);
    if (!value.safe) {
        value = tr__jinja_of_string(tr__jinja_escape(run, value.as.text));
        value.safe = true;
    }
    return value;
}

// What is made of a text that is safe is safe.
static tr_jinja_value as_safe(tr_jinja_value value, const tr_jinja_value *self) {
    value.safe = self->kind == TR_JINJA_TEXT && self->safe;
    return value;
}

static tr_jinja_value change_case(tr_jinja_run *run, const tr_jinja_value *self,
                                  tr_jinja_case to) {
    tr_jinja_string text = tr__jinja_to_text(run, self);
    return as_safe(tr__jinja_change_case(run, text, to), self);
}

static tr_jinja_value trim(tr_jinja_run *run, const tr_jinja_value *self,
                           const tr_jinja_bound *arguments) {
    tr_jinja_value chars = tr__jinja_or(arguments, 0, tr__jinja_none());
    tr_jinja_string text = tr__jinja_to_text(run, self);
    return as_safe(tr__jinja_strip(run, text, &chars, true, true), self);
}

static tr_jinja_value lower(tr_jinja_run *run, const tr_jinja_value *self,
                            const tr_jinja_bound *arguments) {
    (void)arguments;
    return change_case(run, self, TR_CASE_LOWER);
}

static tr_jinja_value upper(tr_jinja_run *run, const tr_jinja_value *self,
                            const tr_jinja_bound *arguments) {
    (void)arguments;
    return change_case(run, self, TR_CASE_UPPER);
}

static tr_jinja_value capitalize(tr_jinja_run *run, const tr_jinja_value *self,
                                 const tr_jinja_bound *arguments) {
    (void)arguments;
    return change_case(run, self, TR_CASE_CAPITAL);
}

static tr_jinja_value title(tr_jinja_run *run, const tr_jinja_value *self,
                            const tr_jinja_bound *arguments) {
    (void)arguments;
    return tr__jinja_change_case(run, tr__jinja_to_text(run, self),
                                 TR_CASE_TITLE_WORDS);
}

// (width)
static tr_jinja_value center(tr_jinja_run *run, const tr_jinja_value *self,
                             const tr_jinja_bound *arguments) {
    int64_t width = tr__jinja_integer_or(run, arguments, 0, 80);
    tr_jinja_value value = tr__jinja_pad(run, tr__jinja_to_text(run, self), width,
                                         TR_PAD_CENTER, (tr_jinja_string){" ", 1});
    return as_safe(value, self);
}

// Of the values by place, or of those by name.
static tr_jinja_value format(tr_jinja_run *run, const tr_jinja_value *self,
                             const tr_jinja_arguments *arguments) {
    tr_jinja_dict *dict = tr__jinja_make_dict(run);
    tr_jinja_value value =
        tr__jinja_make_list(run, TR_JINJA_TUPLE, arguments->value, arguments->count);
    for (size_t i = 0; i < arguments->named_count; i++) {
        tr__jinja_dict_put(run, dict, &arguments->named[i].key,
                           &arguments->named[i].value);
    }
    if (arguments->named_count > 0) {
        value = tr__jinja_of_dict(dict);
    }
    if (arguments->count > 0 && arguments->named_count > 0) {
        tr__jinja_fail(run, "format: values by place and by name");
    }
    if (self->kind == TR_JINJA_TEXT && self->safe) {
        tr__jinja_fail(run, "format: of a text marked `safe` it is not supported");
    }
    return tr__jinja_percent(run, tr__jinja_to_text(run, self), &value);
}

// (old, new, count)
static tr_jinja_value replace(tr_jinja_run *run, const tr_jinja_value *self,
                              const tr_jinja_bound *arguments) {
    tr_jinja_string from = tr__jinja_to_text(run, &arguments->value[0]);
    tr_jinja_string to = tr__jinja_to_text(run, &arguments->value[1]);
    bool all = !arguments->given[2] || arguments->value[2].kind == TR_JINJA_NONE;
    int64_t most = all ? -1 : tr__jinja_integer_or(run, arguments, 2, -1);
    return tr__jinja_replace(run, tr__jinja_to_text(run, self), from, to, most);
}

// (width, first, blank)
static tr_jinja_value indent(tr_jinja_run *run, const tr_jinja_value *self,
                             const tr_jinja_bound *arguments) {
    char blanks[INDENT_MAX];
    memset(blanks, ' ', sizeof blanks);
    bool by_text = arguments->given[0] && arguments->value[0].kind == TR_JINJA_TEXT;
    int64_t width = by_text ? 0 : tr__jinja_integer_or(run, arguments, 0, 4);
    if (width > INDENT_MAX) {
        tr__jinja_fail(run, "indent: over %d blanks", INDENT_MAX);
    }
    width = width < 0 || width > INDENT_MAX ? 0 : width;
    tr_jinja_string margin = by_text ? arguments->value[0].as.text
                                     : (tr_jinja_string){blanks, (size_t)width};
    bool first = tr__jinja_truth_or(arguments, 1, false);
    bool blank = tr__jinja_truth_or(arguments, 2, false);
    tr_jinja_buffer to = {0}, text = {0};
    if (self->kind != TR_JINJA_TEXT || self->safe) {
        tr__jinja_fail(run, "indent: a text is wanted, not a %s",
                       self->safe ? "safe one" : tr__jinja_kind_name(self->kind));
    }
    tr__jinja_print(run, &text, self);
    tr__jinja_add_word(run, &text, "\n");
    tr_jinja_value lines =
        tr__jinja_split_lines(run, (tr_jinja_string){text.bytes, text.count});
    for (size_t i = 0; lines.kind == TR_JINJA_LIST && i < lines.as.list->count; i++) {
        tr_jinja_string line = lines.as.list->item[i].as.text;
        tr__jinja_add_word(run, &to, i > 0 ? "\n" : "");
        if (i > 0 ? line.count > 0 || blank : first) {
            tr__jinja_add(run, &to, margin);
        }
        tr__jinja_add(run, &to, line);
    }
    return tr__jinja_text(to.bytes ? to.bytes : "", to.count);
}

// ---- values

// (default_value, boolean)
static tr_jinja_value otherwise(tr_jinja_run *run, const tr_jinja_value *self,
                                const tr_jinja_bound *arguments) {
    (void)run;
    bool missing =
        self->kind == TR_JINJA_UNDEFINED ||
        (tr__jinja_truth_or(arguments, 1, false) && !tr__jinja_is_true(self));
    return missing ? tr__jinja_or(arguments, 0, tr__jinja_text("", 0)) : *self;
}

static tr_jinja_value length(tr_jinja_run *run, const tr_jinja_value *self,
                             const tr_jinja_bound *arguments) {
    (void)arguments;
    switch (self->kind) {
    case TR_JINJA_UNDEFINED:
        return tr__jinja_integer(0);
    case TR_JINJA_TEXT:
        tr__jinja_charge(run, (int64_t)self->as.text.count / 16);
        return tr__jinja_integer(tr__jinja_length(self->as.text));
    case TR_JINJA_LIST:
    case TR_JINJA_TUPLE:
    case TR_JINJA_RANGE:
    case TR_JINJA_VIEW:
        return tr__jinja_integer((int64_t)self->as.list->count);
    case TR_JINJA_DICT:
        return tr__jinja_integer((int64_t)self->as.dict->count);
    default:
        tr__jinja_fail(run, "length: a %s has none", tr__jinja_kind_name(self->kind));
        return tr__jinja_none();
    }
}

// ---- lists

static tr_jinja_value list(tr_jinja_run *run, const tr_jinja_value *self,
                           const tr_jinja_bound *arguments) {
    (void)arguments;
    const tr_jinja_list *from = tr__jinja_iterate(run, self);
    return from ? tr__jinja_make_list(run, TR_JINJA_LIST, from->item, from->count)
                : tr__jinja_none();
}

static tr_jinja_value items(tr_jinja_run *run, const tr_jinja_value *self,
                            const tr_jinja_bound *arguments) {
    (void)arguments;
    size_t count = self->kind == TR_JINJA_DICT ? self->as.dict->count : 0;
    tr_jinja_value *item = tr__jinja_take(run, count + 1, sizeof *item);
    if (self->kind != TR_JINJA_DICT && self->kind != TR_JINJA_UNDEFINED) {
        tr__jinja_fail(run, "items: a value of type %s",
                       tr__jinja_kind_name(self->kind));
    }
    for (size_t i = 0; item && i < count; i++) {
        const tr_jinja_entry *e = &self->as.dict->entry[i];
        item[i] = tr__jinja_make_pair(run, e->key, e->value);
    }
    return tr__jinja_make_list(run, TR_JINJA_GENERATOR, item, count);
}

static tr_jinja_value at_end(tr_jinja_run *run, const tr_jinja_value *self, bool last) {
    if (last && self->kind == TR_JINJA_GENERATOR) {
        tr__jinja_fail(run, "last: a generator has none; make it a list");
    }
    const tr_jinja_list *from = tr__jinja_iterate(run, self);
    if (!from || from->count == 0) {
        return tr__jinja_undefined((tr_jinja_string){"item", 4});
    }
    tr_jinja_value item = from->item[last ? from->count - 1 : 0];
    if (last && self->kind == TR_JINJA_TEXT) {
        item.safe = self->safe;
    }
    if (self->kind == TR_JINJA_GENERATOR) {
        tr__jinja_give_back(self, 1);
    }
    return item;
}

static tr_jinja_value first(tr_jinja_run *run, const tr_jinja_value *self,
                            const tr_jinja_bound *arguments) {
    (void)arguments;
    return at_end(run, self, false);
}

static tr_jinja_value last(tr_jinja_run *run, const tr_jinja_value *self,
                           const tr_jinja_bound *arguments) {
    (void)arguments;
    return at_end(run, self, true);
}

// (d, attribute)
static tr_jinja_value join(tr_jinja_run *run, const tr_jinja_value *self,
                           const tr_jinja_bound *arguments) {
    const tr_jinja_list *from = tr__jinja_iterate(run, self);
    tr_jinja_string between = tr__jinja_text_or(run, arguments, 0, "");
    bool by = arguments->given[1] && arguments->value[1].kind != TR_JINJA_NONE;
    tr_jinja_buffer to = {0};
    for (size_t i = 0; from && i < from->count && run->status == TR_OK; i++) {
        tr_jinja_value one =
            by ? tr__jinja_by_path(run, &from->item[i], &arguments->value[1])
               : from->item[i];
        if (i > 0) {
            tr__jinja_add(run, &to, between);
        }
        tr__jinja_print(run, &to, &one);
    }
    return tr__jinja_text(to.bytes ? to.bytes : "", to.count);
}

// ---- JSON

static tr_jinja_string separator(tr_jinja_run *run, const tr_jinja_value *pair,
                                 size_t place) {
    bool good = (pair->kind == TR_JINJA_LIST || pair->kind == TR_JINJA_TUPLE) &&
                pair->as.list->count == 2 &&
                pair->as.list->item[place].kind == TR_JINJA_TEXT;
    if (!good) {
        tr__jinja_fail(run, "tojson: separators are a pair of texts");
        return (tr_jinja_string){"", 0};
    }
    return pair->as.list->item[place].as.text;
}

// (ensure_ascii, indent, separators, sort_keys)
static tr_jinja_value tojson(tr_jinja_run *run, const tr_jinja_value *self,
                             const tr_jinja_bound *arguments) {
    char blanks[INDENT_MAX];
    tr_jinja_value by = tr__jinja_or(arguments, 1, tr__jinja_none());
    tr_jinja_value pair = tr__jinja_or(arguments, 2, tr__jinja_none());
    int64_t width = tr__jinja_is_integer(&by) ? tr__jinja_to_integer(&by) : 0;
    width = width < 0 ? 0 : width;
    bool lines = by.kind != TR_JINJA_NONE;
    if (width > INDENT_MAX ||
        (lines && by.kind != TR_JINJA_TEXT && !tr__jinja_is_integer(&by))) {
        tr__jinja_fail(run, "tojson: an indent that is not supported");
        return tr__jinja_none();
    }
    memset(blanks, ' ', sizeof blanks);
    tr_jinja_json_style style = {
        .ascii = tr__jinja_truth_or(arguments, 0, false),
        .lines = lines,
        .indent = by.kind == TR_JINJA_TEXT ? by.as.text
                                           : (tr_jinja_string){blanks, (size_t)width},
        .item = lines ? (tr_jinja_string){",", 1} : (tr_jinja_string){", ", 2},
        .key = {": ", 2},
        .sorted = tr__jinja_truth_or(arguments, 3, false),
    };
    if (pair.kind != TR_JINJA_NONE) {
        style.item = separator(run, &pair, 0);
        style.key = separator(run, &pair, 1);
    }
    tr_jinja_buffer to = {0};
    tr__jinja_to_json(run, &to, self, &style);
    return tr__jinja_text(to.bytes ? to.bytes : "", to.count);
}

// ----

static const tr_jinja_function filters[] = {
    {.name = "string", .call = string},
    {.name = "safe", .call = safe},
    {.name = "escape", .call = escape},
    {.name = "e", .call = escape},
    {.name = "trim", .call = trim, .parameter = {"chars"}},
    {.name = "lower", .call = lower},
    {.name = "upper", .call = upper},
    {.name = "capitalize", .call = capitalize},
    {.name = "title", .call = title},
    {.name = "center", .call = center, .parameter = {"width"}},
    {.name = "format", .any = format},
    {.name = "replace",
     .call = replace,
     .parameter = {"old", "new", "count"},
     .needed = 2},
    {.name = "indent", .call = indent, .parameter = {"width", "first", "blank"}},
    {.name = "default", .call = otherwise, .parameter = {"default_value", "boolean"}},
    {.name = "d", .call = otherwise, .parameter = {"default_value", "boolean"}},
    {.name = "length", .call = length},
    {.name = "count", .call = length},
    {.name = "abs", .call = tr__jinja_absolute},
    {.name = "int", .call = tr__jinja_to_int, .parameter = {"default", "base"}},
    {.name = "float", .call = tr__jinja_to_float, .parameter = {"default"}},
    {.name = "round", .call = tr__jinja_round, .parameter = {"precision", "method"}},
    {.name = "list", .call = list},
    {.name = "items", .call = items},
    {.name = "first", .call = first},
    {.name = "last", .call = last},
    {.name = "join", .call = join, .parameter = {"d", "attribute"}},
    {.name = "tojson",
     .call = tojson,
     .parameter = {"ensure_ascii", "indent", "separators", "sort_keys"}},
    {.name = "select", .any = tr__jinja_select},
    {.name = "reject", .any = tr__jinja_reject},
    {.name = "selectattr", .any = tr__jinja_selectattr},
    {.name = "rejectattr", .any = tr__jinja_rejectattr},
    {.name = "map", .any = tr__jinja_map},
    {.name = "sort",
     .call = tr__jinja_sort,
     .parameter = {"reverse", "case_sensitive", "attribute"}},
    {.name = "dictsort",
     .call = tr__jinja_dictsort,
     .parameter = {"case_sensitive", "by", "reverse"}},
    {.name = "unique",
     .call = tr__jinja_unique,
     .parameter = {"case_sensitive", "attribute"}},
    {.name = "min",
     .call = tr__jinja_min,
     .parameter = {"case_sensitive", "attribute"}},
    {.name = "max",
     .call = tr__jinja_max,
     .parameter = {"case_sensitive", "attribute"}},
    {.name = "sum", .call = tr__jinja_sum, .parameter = {"attribute", "start"}},
    {.name = "reverse", .call = tr__jinja_reverse},
};

const tr_jinja_function *tr__jinja_filter(tr_jinja_string name) {
    return tr__jinja_row(filters, sizeof filters / sizeof *filters, name);
}
