// Lines of metrics.jsonl, read in the quick way: what it takes is what a whole reader
// of JSON finds, and all that is not plain is left to that one.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "report/plot_line.h"

#include <string.h>

static bool scan(const char *text, plot_line *line) {
    plot_hints hints = {{0}};
    return plot_line_scan(text, strlen(text), &hints, line);
}

static void test_values(void **state) {
    (void)state;
    plot_line line;
    plot_hints hints = {{0}};
    static const char text[] =
        "{\"step\": 7, \"kind\": \"step\", \"loss\": 2.5e-1, \"lr\": -0.001, "
        "\"grad_norm\": null, \"skipped\": true, \"spike\": \"loss\", \"act\": null, "
        "\"peak_bytes\": {\"device\": 12, \"host\": 3}, \"ranks\": {\"count\": 2, "
        "\"wait_seconds\": [0, 0.5, 1]}}\n";
    for (int again = 0; again < 2; again++) { // the second time by what was found
        assert_true(plot_line_scan(text, strlen(text), &hints, &line));
        assert_int_equal(line.step, 7);
        assert_true(line.has[PLOT_LOSS] && line.value[PLOT_LOSS] == 0.25);
        assert_true(line.has[PLOT_RATE] && line.value[PLOT_RATE] == -0.001);
        assert_false(line.has[PLOT_NORM] || line.has[PLOT_SPEED]);
        assert_true(line.value[PLOT_DEVICE_PEAK] == 12 && line.has[PLOT_DEVICE_PEAK]);
        assert_true(line.value[PLOT_RANK_WAIT] == 0.5 && line.has[PLOT_RANK_WAIT]);
        assert_true(line.value[PLOT_RANKS] == 2 && line.has[PLOT_RANKS]);
        assert_true(line.event[PLOT_SKIPPED] && line.event[PLOT_SPIKE]);
        assert_false(line.event[PLOT_ROLLBACK]);
    }
    // Keys in another order are not taken for those of the line before.
    static const char other[] = "{\"loss\": 3, \"step\": 8, \"rollback_to\": 2}";
    assert_true(plot_line_scan(other, strlen(other), &hints, &line));
    assert_true(line.step == 8 && line.value[PLOT_LOSS] == 3);
    assert_true(line.event[PLOT_ROLLBACK] && !line.event[PLOT_SKIPPED]);
}

static void test_left_to_others(void **state) {
    static const char *const all[] = {
        "",
        "{}",
        "[1]",
        "{\"loss\": 1}",
        "{\"step\": -1}",
        "{\"step\": 1.5}",
        "{\"step\": 1e3}",
        "{\"step\": 99999999999999999999}",
        "{\"step\": null}",
        "{\"step\": 1",
        "{\"step\": 1}}",
        "{\"step\": 1} x",
        "{\"step\": 1,}",
        "{\"step\": 1, \"loss\": }",
        "{\"step\": 1, \"loss\": 01}",
        "{\"step\": 1, \"loss\": 0x1}",
        "{\"step\": 1, \"loss\": 1.}",
        "{\"step\": 1, \"loss\": .5}",
        "{\"step\": 1, \"loss\": +5}",
        "{\"step\": 1, \"loss\": NaN}",
        "{\"step\": 1, \"loss\": -inf}",
        "{\"step\": 1, \"loss\": 1e999}",
        "{\"step\": 1, \"loss\": \"1\"}",
        "{\"step\": 1, \"loss\": true}",
        "{\"step\": 1, \"loss\": [1, 2, 3]}",
        "{\"step\": 1, \"a\": \"\\u0041\"}",
        "{\"step\": 1, \"a\": \"\xc3\xa4\"}",
        "{\"step\": 1, \"a\": \"\x01\"}",
        "{\"step\": 1, \"peak_bytes.device\": 5}",
        "{\"step\": 1, \"a\": {\"b\": {\"c\": 1}}}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        plot_line line;
        if (scan(all[i], &line)) {
            fail_msg("taken: %s", all[i]);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_left_to_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
