// Public structs begin with their size: what of it is taken, and what is given back.
#include "base/arguments.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

// A result as it was at first, as it is now, and as it will be.
typedef struct first_result {
    size_t size;
    int64_t a;
} first_result;
typedef struct result {
    size_t size;
    int64_t a, b;
} result;
typedef struct later_result {
    size_t size;
    int64_t a, b, c;
} later_result;

static const tr_sized known = {"tr_result", "TR_RESULT_INIT", sizeof(result),
                               sizeof(first_result)};

static void sizes_of_other_versions(void **state) {
    static const struct {
        size_t size;
        tr_status status;
    } sizes[] = {{0, TR_USAGE},
                 {sizeof(first_result) - 1, TR_USAGE},
                 {sizeof(first_result), TR_OK},
                 {sizeof(result), TR_OK},
                 {sizeof(later_result), TR_USAGE},
                 {SIZE_MAX, TR_USAGE}};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        tr_error err = {0};
        later_result given = {sizes[i].size, 0, 0, 0};
        tr_status status = tr__need_sized(&given, &known, "tr_ask", &err);
        assert_int_equal(status, sizes[i].status);
        if (status != TR_OK) {
            assert_non_null(strstr(err.message, "tr_ask: a tr_result of"));
            assert_non_null(strstr(err.message, "begin with TR_RESULT_INIT"));
        }
    }
    assert_int_equal(tr__need_sized(NULL, &known, "tr_ask", NULL), TR_USAGE);
}

static void no_more_is_filled_than_the_size_says(void **state) {
    const result made = {sizeof made, 5, 6};
    result given = {sizeof(first_result), 1, 2};
    (void)state;
    tr__give_sized(&given, &made);
    assert_int_equal(given.size, sizeof(first_result));
    assert_int_equal(given.a, 5);
    assert_int_equal(given.b, 2);
    given.size = sizeof given;
    tr__give_sized(&given, &made);
    assert_int_equal(given.size, sizeof given);
    assert_int_equal(given.b, 6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_of_other_versions),
        cmocka_unit_test(no_more_is_filled_than_the_size_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
