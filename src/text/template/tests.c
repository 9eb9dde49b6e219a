// What stands behind `is`.
#include "text/template/function.h"

enum {
    KINDS_SEQUENCE = 1 << TR_JINJA_TEXT | 1 << TR_JINJA_LIST | 1 << TR_JINJA_TUPLE |
                     1 << TR_JINJA_RANGE | 1 << TR_JINJA_DICT | 1 << TR_JINJA_UNDEFINED,
    KINDS_ITERABLE = KINDS_SEQUENCE | 1 << TR_JINJA_VIEW | 1 << TR_JINJA_GENERATOR |
                     1 << TR_JINJA_LOOP,
    KINDS_NUMBER = 1 << TR_JINJA_BOOL | 1 << TR_JINJA_INTEGER | 1 << TR_JINJA_REAL,
    KINDS_CALLABLE = 1 << TR_JINJA_MACRO | 1 << TR_JINJA_METHOD | 1 << TR_JINJA_GLOBAL |
                     1 << TR_JINJA_UNDEFINED,
};

static tr_jinja_value is_true(tr_jinja_run *run, const tr_jinja_value *self,
                              const tr_jinja_bound *arguments) {
    (void)run;
    (void)arguments;
    return tr__jinja_bool(self->kind == TR_JINJA_BOOL && self->as.truth);
}

static tr_jinja_value is_false(tr_jinja_run *run, const tr_jinja_value *self,
                               const tr_jinja_bound *arguments) {
    (void)run;
    (void)arguments;
    return tr__jinja_bool(self->kind == TR_JINJA_BOOL && !self->as.truth);
}

static int64_t remainder_by(tr_jinja_run *run, const tr_jinja_value *self, int64_t by) {
    if (!tr__jinja_is_integer(self) || by == 0) {
        tr__jinja_fail(run, "a test of divisibility needs integers, and no zero");
        return 0;
    }
    int64_t value = tr__jinja_to_integer(self);
    return by == -1 ? 0 : value % by;
}

static tr_jinja_value is_odd(tr_jinja_run *run, const tr_jinja_value *self,
                             const tr_jinja_bound *arguments) {
    (void)arguments;
    return tr__jinja_bool(remainder_by(run, self, 2) != 0);
}

static tr_jinja_value is_even(tr_jinja_run *run, const tr_jinja_value *self,
                              const tr_jinja_bound *arguments) {
    (void)arguments;
    return tr__jinja_bool(remainder_by(run, self, 2) == 0);
}

static tr_jinja_value is_divisible(tr_jinja_run *run, const tr_jinja_value *self,
                                   const tr_jinja_bound *arguments) {
    int64_t by = tr__jinja_integer_or(run, arguments, 0, 1);
    return tr__jinja_bool(remainder_by(run, self, by) == 0);
}

static tr_jinja_value is_equal(tr_jinja_run *run, const tr_jinja_value *self,
                               const tr_jinja_bound *arguments) {
    return tr__jinja_bool(tr__jinja_same(run, self, &arguments->value[0]));
}

static tr_jinja_value is_different(tr_jinja_run *run, const tr_jinja_value *self,
                                   const tr_jinja_bound *arguments) {
    return tr__jinja_bool(!tr__jinja_same(run, self, &arguments->value[0]));
}

static tr_jinja_value is_in(tr_jinja_run *run, const tr_jinja_value *self,
                            const tr_jinja_bound *arguments) {
    return tr__jinja_bool(tr__jinja_contains(run, &arguments->value[0], self));
}

static tr_jinja_value is_less(tr_jinja_run *run, const tr_jinja_value *self,
                              const tr_jinja_bound *arguments) {
    return tr__jinja_bool(tr__jinja_compare(run, self, &arguments->value[0]) < 0);
}

static tr_jinja_value is_greater(tr_jinja_run *run, const tr_jinja_value *self,
                                 const tr_jinja_bound *arguments) {
    return tr__jinja_bool(tr__jinja_compare(run, self, &arguments->value[0]) > 0);
}

static tr_jinja_value is_most(tr_jinja_run *run, const tr_jinja_value *self,
                              const tr_jinja_bound *arguments) {
    return tr__jinja_bool(tr__jinja_compare(run, self, &arguments->value[0]) <= 0);
}

static tr_jinja_value is_least(tr_jinja_run *run, const tr_jinja_value *self,
                               const tr_jinja_bound *arguments) {
    return tr__jinja_bool(tr__jinja_compare(run, self, &arguments->value[0]) >= 0);
}

static const tr_jinja_function tests[] = {
    {.name = "defined", .kinds = ~(1u << TR_JINJA_UNDEFINED)},
    {.name = "undefined", .kinds = 1u << TR_JINJA_UNDEFINED},
    {.name = "none", .kinds = 1u << TR_JINJA_NONE},
    {.name = "boolean", .kinds = 1u << TR_JINJA_BOOL},
    {.name = "integer", .kinds = 1u << TR_JINJA_INTEGER},
    {.name = "float", .kinds = 1u << TR_JINJA_REAL},
    {.name = "string", .kinds = 1u << TR_JINJA_TEXT},
    {.name = "mapping", .kinds = 1u << TR_JINJA_DICT},
    {.name = "number", .kinds = KINDS_NUMBER},
    {.name = "sequence", .kinds = KINDS_SEQUENCE},
    {.name = "iterable", .kinds = KINDS_ITERABLE},
    {.name = "callable", .kinds = KINDS_CALLABLE},
    {.name = "true", .call = is_true},
    {.name = "false", .call = is_false},
    {.name = "odd", .call = is_odd},
    {.name = "even", .call = is_even},
    {.name = "divisibleby", .call = is_divisible, .parameter = {"num"}, .needed = 1},
    {.name = "eq", .call = is_equal, .parameter = {"other"}, .needed = 1},
    {.name = "equalto", .call = is_equal, .parameter = {"other"}, .needed = 1},
    {.name = "==", .call = is_equal, .parameter = {"other"}, .needed = 1},
    {.name = "ne", .call = is_different, .parameter = {"other"}, .needed = 1},
    {.name = "!=", .call = is_different, .parameter = {"other"}, .needed = 1},
    {.name = "lt", .call = is_less, .parameter = {"other"}, .needed = 1},
    {.name = "lessthan", .call = is_less, .parameter = {"other"}, .needed = 1},
    {.name = "<", .call = is_less, .parameter = {"other"}, .needed = 1},
    {.name = "gt", .call = is_greater, .parameter = {"other"}, .needed = 1},
    {.name = "greaterthan", .call = is_greater, .parameter = {"other"}, .needed = 1},
    {.name = ">", .call = is_greater, .parameter = {"other"}, .needed = 1},
    {.name = "le", .call = is_most, .parameter = {"other"}, .needed = 1},
    {.name = "<=", .call = is_most, .parameter = {"other"}, .needed = 1},
    {.name = "ge", .call = is_least, .parameter = {"other"}, .needed = 1},
    {.name = ">=", .call = is_least, .parameter = {"other"}, .needed = 1},
    {.name = "in", .call = is_in, .parameter = {"seq"}, .needed = 1},
};

const tr_jinja_function *tr__jinja_test(tr_jinja_string name) {
    return tr__jinja_row(tests, sizeof tests / sizeof *tests, name);
}
