// What strftime_now makes of a date.
#include "support.h"

#include <jansson.h>
#include <string.h>
#include <time.h>

static const struct {
    const char *format, *shown;
} cases[] = {
    {"%Y-%m-%d", "2026-02-03"},
    {"%-d %B %Y", "3 February 2026"},
    {"%-m/%-d/%y %-H:%M", "2/3/26 4:05"},
    {"%A, %a %b %e, day %j", "Tuesday, Tue Feb  3, day 034"},
    {"%-j %u %w %p %-I %% 5%%", "34 2 2 AM 4 % 5%"},
    {"%D %F %R %T", "02/03/26 2026-02-03 04:05 04:05:06"},
};

static tr_status show(const char *format, tr_jinja_rendered *out, tr_error *err) {
    const struct tm now = {.tm_year = 126,
                           .tm_mon = 1,
                           .tm_mday = 3,
                           .tm_hour = 4,
                           .tm_min = 5,
                           .tm_sec = 6,
                           .tm_wday = 2,
                           .tm_yday = 33};
    char template[200];
    snprintf(template, sizeof template, "{{ strftime_now('%s') }}", format);
    json_t *variables = json_object();
    tr_jinja *jinja = NULL;
    tr_status status = tr__jinja_parse("t", template, strlen(template), &jinja, err);
    assert_int_equal(status, TR_OK);
    status = tr__jinja_render(jinja, variables, &now, out, err);
    tr__jinja_destroy(jinja);
    json_decref(variables);
    return status;
}

static void test_formats(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tr_jinja_rendered rendered = {0};
        tr_error err = {0};
        assert_int_equal(show(cases[i].format, &rendered, &err), TR_OK);
        assert_string_equal(rendered.text, cases[i].shown);
        tr__jinja_rendered_release(&rendered);
    }
}

static void test_refused(void **state) {
    (void)state;
    static const char *const formats[] = {"%Z", "%f", "%-Y", "%_d", "%", "x%-"};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        tr_jinja_rendered rendered = {0};
        tr_error err = {0};
        assert_int_equal(show(formats[i], &rendered, &err), TR_DATA);
        assert_non_null(strstr(err.message, "strftime_now: %"));
        assert_non_null(strstr(err.message, "is not supported"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formats),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
