// Several errors told as one: all of them, up to a bound, with the first one's status.
#include "base/problems.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

static void add(tr_problems *problems, tr_status status, const char *words) {
    tr_error err = {0};
    if (status != TR_OK) {
        tr_fail(&err, status, "%s", words);
    }
    tr__problems_add(problems, &err);
}

static void test_few(void **state) {
    tr_problems problems = {0};
    tr_error none = {0}, one = {0}, two = {0};
    (void)state;
    assert_int_equal(tr__problems_end(&problems, &none), TR_OK);
    add(&problems, TR_OK, "");
    add(&problems, TR_DATA, "a");
    assert_int_equal(tr__problems_end(&problems, &one), TR_DATA);
    assert_string_equal(one.message, "a");
    add(&problems, TR_USAGE, "b");
    assert_int_equal(tr__problems_end(&problems, &two), TR_DATA);
    assert_string_equal(two.message, "2 problems:\n    a\n    b");
}

// What is left out is counted, whether there are too many or too long ones.
static void test_bounds(void **state) {
    static const int lengths[] = {1, 400, 3000, TR_MESSAGE_MAX - 1};
    char words[TR_MESSAGE_MAX];
    (void)state;
    for (int i = 0; i < 4; i++) {
        tr_problems problems = {0};
        tr_error err = {0};
        memset(words, 'x', (size_t)lengths[i]);
        words[lengths[i]] = '\0';
        for (int k = 0; k < 50; k++) {
            add(&problems, TR_USAGE, words);
        }
        assert_int_equal(tr__problems_end(&problems, &err), TR_USAGE);
        assert_int_equal(strncmp(err.message, "50 problems:\n    x", 18), 0);
        size_t told = 0;
        for (const char *at = err.message; (at = strstr(at, "\n    x")); at++) {
            told++;
        }
        char rest[64];
        snprintf(rest, sizeof rest, "\n    ... and %zu more", 50 - told);
        assert_true(told >= 1 && told <= TR_PROBLEMS_MAX);
        assert_string_equal(err.message + strlen(err.message) - strlen(rest), rest);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few),
        cmocka_unit_test(test_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
