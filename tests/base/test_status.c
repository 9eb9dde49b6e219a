// Status codes and the error object.
#include <tranche/status.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void exit_statuses(void **state) {
    (void)state;
    static const struct {
        tr_status status;
        int exit;
    } want[] = {{TR_OK, 0},     {TR_DIFFERENT, 1},    {TR_USAGE, 2},
                {TR_BUDGET, 3}, {TR_DATA, 4},         {TR_IO, 5},
                {TR_COMM, 6},   {TR_NUMBERS, 7},      {TR_INTERNAL, 8},
                {TR_MEMORY, 8}, {TR_INTERRUPTED, 128}};
    assert_int_equal(sizeof want / sizeof *want, TR_STATUS_COUNT);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        assert_int_equal(tr_status_exit(want[i].status), want[i].exit);
        assert_true(strlen(tr_status_words(want[i].status)) > 0);
    }
    assert_int_equal(tr_status_exit((tr_status)99), 8);
    assert_int_equal(tr_status_exit((tr_status)-1), 8);
    assert_string_equal(tr_status_words((tr_status)99), "unknown");
}

static void the_first_message_stays(void **state) {
    (void)state;
    tr_error err = {0};
    assert_int_equal(tr_fail(&err, TR_DATA, "row %d of %s", 7, "x.csv"), TR_DATA);
    assert_int_equal(tr_fail(&err, TR_IO, "later"), TR_IO);
    assert_int_equal(err.status, TR_DATA);
    assert_string_equal(err.message, "row 7 of x.csv");
}

static void nobody_may_listen(void **state) {
    (void)state;
    assert_int_equal(tr_fail(NULL, TR_USAGE, "%s", "unheard"), TR_USAGE);
}

static void a_long_message_is_cut(void **state) {
    (void)state;
    char text[3 * TR_MESSAGE_MAX];
    tr_error err = {0};
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    tr_fail(&err, TR_USAGE, "%s", text);
    assert_int_equal(strlen(err.message), TR_MESSAGE_MAX - 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exit_statuses),
        cmocka_unit_test(the_first_message_stays),
        cmocka_unit_test(nobody_may_listen),
        cmocka_unit_test(a_long_message_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
