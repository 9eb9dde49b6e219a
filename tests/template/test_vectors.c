// Templates that use each construct, against what jinja2 makes of them
// (tools/template_vectors.py). Whichever allocation fails, there is a status.
#include "support.h"

#include "base/memory.h"

#include <jansson.h>
#include <string.h>

static json_t *load(void) {
    json_error_t problem;
    json_t *root = json_load_file(TR_TEST_DATA "/templates.json", 0, &problem);
    assert_non_null(root);
    return root;
}

// Constructs that jinja2 has and Tranche refuses.
static bool refused_by_choice(const char *template) {
    static const char *const marks[] = {"{% with", "recursive", "{% call", " 1_0",
                                        NULL};
    for (size_t i = 0; marks[i]; i++) {
        if (strstr(template, marks[i])) {
            return true;
        }
    }
    return false;
}

static void check_spans(const char *template, const tr_jinja_rendered *rendered,
                        const json_t *spans) {
    assert_int_equal(rendered->spans, json_array_size(spans));
    for (size_t i = 0; i < rendered->spans; i++) {
        json_t *span = json_array_get(spans, i);
        if (rendered->span[i].begin !=
                (size_t)json_integer_value(json_array_get(span, 0)) ||
            rendered->span[i].end !=
                (size_t)json_integer_value(json_array_get(span, 1))) {
            fail_msg("%s: span %zu is [%zu, %zu)", template, i, rendered->span[i].begin,
                     rendered->span[i].end);
        }
    }
}

static void check_case(const json_t *one, const json_t *variables) {
    const char *template = json_string_value(json_array_get(one, 0));
    const json_t *wanted = json_array_get(one, 1);
    tr_jinja_rendered rendered = {0};
    tr_error err = {0};
    tr_status status = jinja_render(template, variables, &rendered, &err);
    if (json_is_null(wanted) || refused_by_choice(template)) {
        if (status != TR_DATA || strncmp(err.message, "t:", 2) != 0) {
            fail_msg("%s: status %d, \"%s\", \"%s\"", template, status,
                     rendered.text ? rendered.text : "", err.message);
        }
        return;
    }
    if (status != TR_OK || rendered.bytes != json_string_length(wanted) ||
        memcmp(rendered.text, json_string_value(wanted), rendered.bytes) != 0) {
        fail_msg("%s:\n    \"%s\"\n    \"%s\" (%s)", template,
                 json_string_value(wanted), rendered.text ? rendered.text : "",
                 err.message);
    }
    check_spans(template, &rendered, json_array_get(one, 2));
    tr__jinja_rendered_release(&rendered);
}

static void test_equal(void **state) {
    (void)state;
    json_t *root = load(), *cases = json_object_get(root, "cases");
    assert_true(json_array_size(cases) > 200);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        check_case(json_array_get(cases, i), json_object_get(root, "variables"));
    }
    json_decref(root);
}

static void fail_each(const char *template, const json_t *variables) {
    tr_jinja_rendered rendered = {0};
    tr_error err = {0};
    int64_t before = tr__memory_calls();
    assert_int_equal(jinja_render(template, variables, &rendered, &err), TR_OK);
    int64_t calls = tr__memory_calls() - before;
    tr__jinja_rendered_release(&rendered);
    for (int64_t nth = 1; nth <= calls; nth++) {
        tr_error failed = {0};
        tr__memory_fail_at(nth);
        tr_status status = jinja_render(template, variables, &rendered, &failed);
        tr__memory_fail_at(0);
        if (status != TR_MEMORY || !failed.message[0]) {
            fail_msg("%s, allocation %lld of %lld: status %d, \"%s\"", template,
                     (long long)nth, (long long)calls, (int)status, failed.message);
        }
    }
}

static void test_memory(void **state) {
    (void)state;
    json_t *root = load(), *cases = json_object_get(root, "cases");
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *one = json_array_get(cases, i);
        const char *template = json_string_value(json_array_get(one, 0));
        if (!json_is_null(json_array_get(one, 1)) && !refused_by_choice(template)) {
            fail_each(template, json_object_get(root, "variables"));
        }
    }
    json_decref(root);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
