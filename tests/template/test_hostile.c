// Templates that are made to be slow, large or deep end soon, with the right words.
#include "support.h"

#include <jansson.h>
#include <string.h>

#define TEN(x)     x x x x x x x x x x
#define HUNDRED(x) TEN(TEN(x))

static const struct {
    const char *template, *words;
} cases[] = {
    // steps
    {"{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
     "t:1: the template"},
    {"{% set a = 'x' * 9999999 %}{% for b in range(99999) %}{{ a|length }}{% endfor %}",
     "takes too long"},
    {"{% set a = 'x' * 9999999 %}{% for b in range(99999) %}{{ 'y' in a }}{% endfor %}",
     "takes too long"},
    {"{% set n = namespace(a=[1]) %}{% for b in range(90) %}"
     "{% set n.a = [n.a, n.a] %}{% endfor %}{{ n.a == [n.a[0], n.a[1]] }}",
     "takes too long"},
    // memory
    {"{{ ('x' * 9999) * 99999 }}", "too much memory"},
    {"{% set n = namespace(a='xxxxxxxxxx') %}{% for b in range(40) %}"
     "{% set n.a = n.a ~ n.a %}{% endfor %}",
     "too much memory"},
    {"{% set n = namespace(a=[1]) %}{% for b in range(40) %}"
     "{% set n.a = n.a + n.a %}{% endfor %}",
     "t:1: the template"},
    {"{{ range(100001) }}", "range: "},
    // depth
    {"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "nested too deeply"},
    {"{% set n = namespace(a=[1]) %}{% for b in range(900) %}"
     "{% set n.a = [n.a] %}{% endfor %}",
     "nested too deeply"},
    {"{{ " HUNDRED("((") "1" HUNDRED("))") " }}", "nested too deeply"},
    {"{{ " HUNDRED("[") "1" HUNDRED("]") " }}", "nested too deeply"},
    {"{{ " HUNDRED("-") "1 }}", "nested too deeply"},
    {"{{ " HUNDRED("not ") "1 }}", "nested too deeply"},
    {HUNDRED("{% if 1 %}") HUNDRED("{% endif %}"), "nested too deeply"},
    {"{{ 1" HUNDRED(TEN("+1")) " }}", "nested too deeply"},
    // what is not supported is named
    {"a\n{% include 'x' %}", "t:2: the tag {% include %} is not supported"},
    {"{% block a %}{% endblock %}", "t:1: the tag {% block %} is not supported"},
    {"{{ f(*a) }}", "t:1: arguments by * and **"},
    {"\n\n{{ a|from_json }}", "t:3: the filter 'from_json' is not supported"},
    {"{{ cycler() }}", "t:1: cycler is not supported"},
    // what Python has and Tranche has not is no empty text
    {"{{ self }}", "the name 'self' is not supported"},
    {"{% macro f() %}{{ varargs }}{% endmacro %}{{ f() }}", "the name 'varargs'"},
    {"{{ (7).bit_length() }}", "'bit_length' of a int"},
    {"{{ 'x'.expandtabs() }}", "expandtabs is not supported"},
    {"{{ {}.items().mapping }}", "'mapping' of a dictionary view"},
    {"{{ range.start }}", "'start' of a function"},
    {"{% macro f() %}{% endmacro %}{{ f.name }}", "'name' of a macro"},
    {"{{ range(9)|tojson }}", "tojson: a value of type range"},
    {"{{ 1e22|int }}", "over 64 bits"},
    {"{{ '99999999999999999999'|int }}", "over 64 bits"},
    {"{{ '\u0663'|int }}", "digits beyond ASCII"},
    {"{{ '\u4e00'.isnumeric() }}", "(U+4E00)"},
    {"{{ '\u00e9'.isupper() }}", "(U+00E9)"},
    {"{{ {}.keys() == {}.keys() }}", "equal to another"},
    {"{% set a %}{{ a }}{% endset %}", "'a' within the body"},
    {"{{ 9007199254740993 / 3 }}", "over 53 bits"},
    {"{{ '%#x' % 1 }}", "the conversion '#'"},
    {"{{ '%99999999s' % 1 }}", "%: a width"},
    {"{{ 'x'.ljust(9999999999) }}", "t:1: the template"},
    {"{{ [1, 2] * 99999999999 }}", "too much memory"},
    {"{{ [1, 2] * 9223372036854775807 }}", "too much memory"},
    {"{{ strftime_now('%Y') }}", "t:1: strftime_now"},
    {"{{ 9223372036854775807 + 1 }}", "over 64 bits"},
    {"{{ 99999999999999999999 }}", "t:1: a number"},
    {"{{ 'stra\xc3\x9f"
     "e'.upper() }}",
     "upper case beyond ASCII"},
    {"a\xff", "t: is not UTF-8"},
    {"{{ '\\ud800' }}", "names no character"},
    {"{# never", "t:1: a comment has no end"},
    {"{{ 'a }}", "has no closing quote"},
    {"{{ ] }}", "t:1: a closing bracket"},
    {"{{ ; }}", "t:1: a character"},
};

static void test_refused(void **state) {
    (void)state;
    json_t *variables = json_object();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tr_jinja_rendered rendered = {0};
        tr_error err = {0};
        tr_status status = jinja_render(cases[i].template, variables, &rendered, &err);
        tr__jinja_rendered_release(&rendered);
        if (status != TR_DATA || !strstr(err.message, cases[i].words)) {
            fail_msg("%.80s: status %d, \"%s\" has no \"%s\"", cases[i].template,
                     status, err.message, cases[i].words);
        }
    }
    json_decref(variables);
}

// A chain of many branches and a long text are no depth.
static void test_long(void **state) {
    (void)state;
    json_t *variables = json_object();
    tr_jinja_rendered rendered = {0};
    tr_error err = {0};
    assert_int_equal(
        jinja_render(
            "{% if 0 %}" HUNDRED(TEN("{% elif 0 %}a")) "{% else %}b{% endif %}" HUNDRED(
                TEN("{{ 1 }}")),
            variables, &rendered, &err),
        TR_OK);
    assert_int_equal(rendered.bytes, 1001);
    assert_int_equal(rendered.text[0], 'b');
    tr__jinja_rendered_release(&rendered);
    json_decref(variables);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
