// Arguments, and how they go to parameters.
#include "text/template/function.h"

#include <string.h>

static size_t count_parameters(const tr_jinja_function *function) {
    size_t count = 0;
    while (count < TR_JINJA_PARAMETERS && function->parameter[count]) {
        count++;
    }
    return count;
}

static void bind_named(tr_jinja_run *run, const tr_jinja_function *function,
                       const tr_jinja_entry *named, tr_jinja_bound *bound) {
    tr_jinja_string name = named->key.as.text;
    size_t count = count_parameters(function), place = 0;
    while (place < count && !tr__jinja_text_is(name, function->parameter[place])) {
        place++;
    }
    if (place == count || bound->given[place]) {
        tr__jinja_fail(run, "%s: the argument %.*s is not known, or given twice",
                       function->name, (int)name.count, name.bytes);
        return;
    }
    bound->value[place] = named->value;
    bound->given[place] = true;
}

static tr_jinja_bound bind(tr_jinja_run *run, const tr_jinja_function *function,
                           const tr_jinja_arguments *arguments) {
    tr_jinja_bound bound = {0};
    size_t count = count_parameters(function);
    if (arguments->count > count) {
        tr__jinja_fail(run, "%s: %zu arguments, where %zu are supported",
                       function->name, arguments->count, count);
        return bound;
    }
    for (size_t i = 0; i < arguments->count; i++) {
        bound.value[i] = arguments->value[i];
        bound.given[i] = true;
    }
    for (size_t i = 0; i < arguments->named_count; i++) {
        bind_named(run, function, &arguments->named[i], &bound);
    }
    for (size_t i = 0; i < function->needed; i++) {
        if (!bound.given[i]) {
            tr__jinja_fail(run, "%s: needs the argument %s", function->name,
                           function->parameter[i]);
        }
    }
    return bound;
}

tr_jinja_value tr__jinja_call(tr_jinja_run *run, const tr_jinja_function *function,
                              const tr_jinja_value *self,
                              const tr_jinja_arguments *arguments) {
    if (run->status != TR_OK) {
        return tr__jinja_none();
    }
    if (function->any) {
        return function->any(run, self, arguments);
    }
    if (function->kinds) {
        if (arguments->count + arguments->named_count > 0) {
            tr__jinja_fail(run, "the test '%s' takes no arguments", function->name);
        }
        return tr__jinja_bool(function->kinds >> self->kind & 1);
    }
    if (!function->call) {
        tr__jinja_fail(run, "%s is not supported", function->name);
        return tr__jinja_none();
    }
    tr_jinja_bound bound = bind(run, function, arguments);
    return run->status == TR_OK ? function->call(run, self, &bound) : tr__jinja_none();
}

static bool plain(tr_jinja_run *run, const tr_jinja_value *value) {
    return value->kind < TR_JINJA_TEXT ||
           (value->kind == TR_JINJA_TEXT &&
            tr__jinja_escape(run, value->as.text).count == value->as.text.count);
}

tr_jinja_value tr__jinja_call_method(tr_jinja_run *run, const tr_jinja_method *method,
                                     const tr_jinja_arguments *arguments) {
    bool safe = method->self->kind == TR_JINJA_TEXT && method->self->safe;
    bool possible = arguments->named_count == 0;
    tr_jinja_value value =
        tr__jinja_call(run, method->function, method->self, arguments);
    if (!safe || tr__jinja_is_number(&value)) {
        return value;
    }
    for (size_t i = 0; i < arguments->count; i++) {
        possible = possible && plain(run, &arguments->value[i]);
    }
    if (!possible) {
        tr__jinja_fail(run,
                       "%s of a text marked `safe`, with arguments that would be "
                       "escaped, is not supported",
                       method->function->name);
    }
    value.safe = value.kind == TR_JINJA_TEXT;
    for (size_t i = 0; tr__jinja_is_series(&value) && i < value.as.list->count; i++) {
        value.as.list->item[i].safe = value.as.list->item[i].kind == TR_JINJA_TEXT;
    }
    return value;
}

const tr_jinja_function *tr__jinja_row(const tr_jinja_function *table, size_t count,
                                       tr_jinja_string name) {
    for (size_t i = 0; i < count; i++) {
        if (tr__jinja_text_is(name, table[i].name)) {
            return &table[i];
        }
    }
    return NULL;
}

// ---- reading arguments

tr_jinja_value tr__jinja_or(const tr_jinja_bound *arguments, size_t place,
                            tr_jinja_value otherwise) {
    return arguments->given[place] ? arguments->value[place] : otherwise;
}

bool tr__jinja_truth_or(const tr_jinja_bound *arguments, size_t place, bool otherwise) {
    return arguments->given[place] ? tr__jinja_is_true(&arguments->value[place])
                                   : otherwise;
}

int64_t tr__jinja_integer_or(tr_jinja_run *run, const tr_jinja_bound *arguments,
                             size_t place, int64_t otherwise) {
    const tr_jinja_value *value = &arguments->value[place];
    if (!arguments->given[place]) {
        return otherwise;
    }
    if (!tr__jinja_is_integer(value)) {
        tr__jinja_fail(run, "an integer is wanted, not a %s",
                       tr__jinja_kind_name(value->kind));
        return otherwise;
    }
    return tr__jinja_to_integer(value);
}

tr_jinja_string tr__jinja_text_or(tr_jinja_run *run, const tr_jinja_bound *arguments,
                                  size_t place, const char *otherwise) {
    const tr_jinja_value *value = &arguments->value[place];
    if (arguments->given[place] && value->kind == TR_JINJA_TEXT) {
        return value->as.text;
    }
    if (arguments->given[place]) {
        tr__jinja_fail(run, "a text is wanted, not a %s",
                       tr__jinja_kind_name(value->kind));
    }
    return (tr_jinja_string){otherwise, strlen(otherwise)};
}
