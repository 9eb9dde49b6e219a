// A resumed run cuts its metrics back to its checkpoint's step, whatever the end of the
// process has left in the file.
#include "program.h"
#include "scratch.h"
#include "train/watch/metrics.h"
#include "trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EVALUATED "{\"step\": 2, \"validation_loss\": 3}\n"

static void check_kept(void *const *state, const char *content, size_t bytes,
                       int64_t step, const char *kept) {
    tr_error err = {0};
    tr_metrics metrics;
    tr_metrics_kept found = {.best_step = 2};
    const char *path = scratch_write(state, "metrics.jsonl", content, bytes);
    trial_ok(tr__metrics_open(*state, step, &metrics, &found, &err), &err);
    tr__metrics_close(&metrics);
    bool evaluated = strstr(kept, EVALUATED) != NULL;
    assert_int_equal(found.evaluated_step, evaluated ? 2 : -1);
    assert_true(found.best_loss == (evaluated ? 3 : INFINITY));
    char *text = file_text(path);
    assert_string_equal(text, kept);
    free(text);
}

#define ONE   "{\"step\": 1, \"loss\": 3}\n"
#define TWO   "{\"step\": 2, \"loss\": 2}\n"
#define EPOCH "{\"step\": 2, \"epoch\": 0}\n"
#define THREE "{\"step\": 3, \"loss\": 1}\n"

static void lines_of_later_steps_go(void **state) {
    static const char all[] = ONE TWO EPOCH EVALUATED THREE;
    check_kept(state, all, strlen(all), 3, all);
    check_kept(state, all, strlen(all), 9, all);
    check_kept(state, all, strlen(all), 2, ONE TWO EPOCH EVALUATED);
    check_kept(state, all, strlen(all), 1, ONE);
    check_kept(state, all, strlen(all), 0, "");
    check_kept(state, "", 0, 2, "");
}

static void what_is_not_whole_goes(void **state) {
    static const char broken[] = ONE TWO "{\"step\": 2, \"los";
    static const char strange[] = ONE "not a line of ours\n" TWO;
    static const char zeros[] = ONE "\0\0\0\0\0\0\0\0"; // of a power cut
    static const char zero_line[] = ONE "\0\0\n" TWO;
    check_kept(state, broken, sizeof broken - 1, 2, ONE TWO);
    check_kept(state, strange, sizeof strange - 1, 2, ONE);
    check_kept(state, zeros, sizeof zeros - 1, 2, ONE);
    check_kept(state, zero_line, sizeof zero_line - 1, 2, ONE);
}

// Longer than any line that is written.
static void an_endless_line_goes(void **state) {
    enum { LENGTH = 100000 };
    char *text = malloc(LENGTH);
    assert_non_null(text);
    memcpy(text, ONE, sizeof ONE);
    memset(text + strlen(ONE), ' ', LENGTH - strlen(ONE));
    check_kept(state, text, LENGTH, 2, ONE);
    free(text);
}

static void a_file_that_cannot_be_written_is_named(void **state) {
    tr_error err = {0};
    tr_metrics metrics;
    tr_metrics_kept found = {.best_step = -1};
    const char *folder = scratch_path(state, "missing");
    assert_int_equal(tr__metrics_open(folder, 0, &metrics, &found, &err), TR_IO);
    assert_non_null(strstr(err.message, "missing/metrics.jsonl"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(lines_of_later_steps_go),
        TEST(what_is_not_whole_goes),
        TEST(an_endless_line_goes),
        TEST(a_file_that_cannot_be_written_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
