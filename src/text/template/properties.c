// What Python's objects have beside methods. What is known and not supported is an
// error: an attribute that there is not is undefined, and prints as nothing.
#include "text/template/run.h"

#include <string.h>

static bool is_one_of(tr_jinja_string name, const char *const *words) {
    for (; *words; words++) {
        if (tr__jinja_text_is(name, *words)) {
            return true;
        }
    }
    return false;
}

static tr_jinja_value of_number(const tr_jinja_value *of, tr_jinja_string name) {
    bool whole = of->kind != TR_JINJA_REAL;
    tr_jinja_value number = whole ? tr__jinja_integer(tr__jinja_to_integer(of)) : *of;
    if (tr__jinja_text_is(name, "real") ||
        (whole && tr__jinja_text_is(name, "numerator"))) {
        return number;
    }
    if (tr__jinja_text_is(name, "imag")) {
        return whole ? tr__jinja_integer(0) : tr__jinja_real(0);
    }
    return whole && tr__jinja_text_is(name, "denominator") ? tr__jinja_integer(1)
                                                           : tr__jinja_undefined(name);
}

static tr_jinja_value of_range(const tr_jinja_list *range, tr_jinja_string name) {
    return tr__jinja_text_is(name, "start")  ? tr__jinja_integer(range->start)
           : tr__jinja_text_is(name, "stop") ? tr__jinja_integer(range->stop)
           : tr__jinja_text_is(name, "step") ? tr__jinja_integer(range->step)
                                             : tr__jinja_undefined(name);
}

// Functions of Python's numbers and views that templates have no use for.
static bool known(const tr_jinja_value *of, tr_jinja_string name) {
    static const char *const integers[] = {
        "as_integer_ratio", "bit_count",  "bit_length", "conjugate",
        "from_bytes",       "is_integer", "to_bytes",   NULL};
    static const char *const reals[] = {
        "as_integer_ratio", "conjugate", "from_number", "fromhex", "hex",
        "is_integer",       NULL};
    static const char *const views[] = {"isdisjoint", "mapping", NULL};
    static const char *const macros[] = {
        "arguments", "caller", "catch_kwargs", "catch_varargs", "explicit_caller",
        "name",      NULL};
    // of range, dict, and those that are not supported
    static const char *const globals[] = {"count",   "index", "start", "stop",
                                          "step",    "next",  "reset", "fromkeys",
                                          "current", NULL};
    static const char *const generators[] = {
        "close", "send", "throw", "gi_running", "gi_suspended", "gi_yieldfrom", NULL};
    switch (of->kind) {
    case TR_JINJA_BOOL:
    case TR_JINJA_INTEGER:
        return is_one_of(name, integers);
    case TR_JINJA_REAL:
        return is_one_of(name, reals);
    case TR_JINJA_VIEW:
        return is_one_of(name, views);
    case TR_JINJA_GENERATOR:
        return is_one_of(name, generators);
    case TR_JINJA_MACRO:
        return is_one_of(name, macros);
    case TR_JINJA_GLOBAL:
        return is_one_of(name, globals);
    default:
        return false;
    }
}

tr_jinja_value tr__jinja_property(tr_jinja_run *run, const tr_jinja_value *of,
                                  tr_jinja_string name) {
    if (known(of, name)) {
        tr__jinja_fail(run, "the attribute '%.*s' of a %s is not supported",
                       (int)(name.count < 100 ? name.count : 100), name.bytes,
                       tr__jinja_kind_name(of->kind));
        return tr__jinja_none();
    }
    return tr__jinja_is_number(of)      ? of_number(of, name)
           : of->kind == TR_JINJA_RANGE ? of_range(of->as.list, name)
                                        : tr__jinja_undefined(name);
}
