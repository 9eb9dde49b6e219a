// Messages go where the caller says, and the clock does not run backwards.
#include "base/clock.h"
#include "base/log.h"
#include "base/wait.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct heard {
    int lines;
    tr_log_level level;
    char line[2048];
} heard;

static void hear(void *user, tr_log_level level, const char *line) {
    heard *h = user;
    h->lines++;
    h->level = level;
    snprintf(h->line, sizeof h->line, "%s", line);
}

static void lines_arrive(void **state) {
    (void)state;
    heard h = {0};
    tr_log log = {hear, &h};
    tr__note(&log, "%d of %s", 3, "five");
    assert_int_equal(h.lines, 1);
    assert_int_equal(h.level, TR_LOG_NOTE);
    assert_string_equal(h.line, "3 of five");
    tr__warn(&log, "%s", "100%d"); // user text is no format
    assert_int_equal(h.level, TR_LOG_WARNING);
    assert_string_equal(h.line, "100%d");
}

static void nobody_may_listen(void **state) {
    (void)state;
    tr_log silent = {0};
    tr__note(NULL, "%d", 1);
    tr__warn(&silent, "%d", 1);
}

static void a_long_line_is_cut(void **state) {
    (void)state;
    heard h = {0};
    tr_log log = {hear, &h};
    tr__note(&log, "%2000d", 1);
    assert_int_equal(strlen(h.line), 1023);
}

static void time_goes_on(void **state) {
    (void)state;
    double last = tr__seconds();
    for (int i = 0; i < 1000; i++) {
        double now = tr__seconds();
        assert_true(now >= last);
        last = now;
    }
}

// Short work is not spoken of. Long work is, but not each time, and not at its end.
static void waits_are_told(void **state) {
    (void)state;
    heard h = {0};
    tr_log log = {hear, &h};
    tr_wait wait = tr__wait_begin(&log, "reading the weights");
    tr__wait_part(&wait, 1, 4);
    tr__wait_count(&wait, 7, "plans");
    assert_int_equal(h.lines, 0);
    wait.next = tr__seconds() - 1;
    tr__wait_part(&wait, 1, 4);
    assert_int_equal(h.lines, 1);
    assert_int_equal(h.level, TR_LOG_NOTE);
    assert_string_equal(h.line, "reading the weights: 25%");
    tr__wait_part(&wait, 2, 4);
    assert_int_equal(h.lines, 1);
    wait.next = tr__seconds() - 1;
    tr__wait_part(&wait, 4, 4);
    tr__wait_part(&wait, 0, 0);
    assert_int_equal(h.lines, 1);
    wait.what = "planning";
    tr__wait_count(&wait, 7, "plans made");
    assert_string_equal(h.line, "planning: 7 plans made");
    assert_true(wait.next > tr__seconds() + 1);
    wait = tr__wait_begin(NULL, "nobody");
    wait.next = 0;
    tr__wait_part(&wait, 1, 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_arrive),       cmocka_unit_test(nobody_may_listen),
        cmocka_unit_test(a_long_line_is_cut), cmocka_unit_test(time_goes_on),
        cmocka_unit_test(waits_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
