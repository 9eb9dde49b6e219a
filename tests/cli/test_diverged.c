// Runs that have diverged: they end, with a status and a message.
#include "command.h"
#include "runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char diverges[] =
    ", \"optimizer\": {\"type\": \"SGD\", \"params\": {\"lr\": 1e38}}, "
    "\"gradient_clipping\": 0, \"checkpoint\": {\"every\": 1, \"keep\": 1}, "
    "\"execution\": {\"wave\": 1}%s";

static void diverging_run(void *const *state, const char *more) {
    char keys[512];
    snprintf(keys, sizeof keys, diverges, more);
    run_file(state, text_run, keys);
}

// Nothing that a run says has "-nan" in it.
static void assert_plain(const outcome *o) {
    assert_null(strstr(o->out, "-nan"));
    assert_null(strstr(o->err, "-nan"));
}

static int64_t whole_of(void *const *state, const char *file, const char *name) {
    json_t *object = file_json(state, file);
    json_int_t value = json_integer_value(json_object_get(object, name));
    json_decref(object);
    return value;
}

// One update is made; the step after it has no loss any more.
static void test_ends(void **state) {
    diverging_run(state, "");
    outcome o = run(state, LIST("train", "run.json", "--steps", "60"));
    assert_int_equal(o.status, 7);
    assert_says(o.err, "20 updates in a row were skipped");
    assert_says(o.err, "max_skipped_updates");
    assert_plain(&o);
    outcome_free(&o);
    const char *latest = "out/checkpoints/latest/state.json";
    assert_int_equal(whole_of(state, latest, "step"), 1); // none since
}

static void test_limit_is_a_key(void **state) {
    diverging_run(state, ", \"max_skipped_updates\": 3");
    outcome o = run(state, LIST("train", "run.json", "--steps", "60"));
    assert_int_equal(o.status, 7);
    assert_says(o.err, "step 4: 3 updates in a row were skipped");
    outcome_free(&o);
    diverging_run(state, ", \"max_skipped_updates\": 0");
    o = run(state, LIST("train", "run.json", "--steps", "30", "--resume", "never"));
    assert_int_equal(o.status, 0);
    assert_says(o.out, "29 skipped so far");
    assert_plain(&o);
    outcome_free(&o);
    // What was counted is in the checkpoint at the end.
    o = run(state, LIST("train", "run.json", "--steps", "60", "--set",
                        "max_skipped_updates=31"));
    assert_int_equal(o.status, 7);
    assert_says(o.err, "step 32: 31 updates in a row");
    outcome_free(&o);
}

// fp16 looks for its loss scale for longer than that.
static void test_scale_is_searched(void **state) {
    run_file(state, text_run,
             ", \"fp16\": {\"enabled\": true, \"initial_scale_power\": 60}");
    outcome o = run(state, LIST("train", "run.json", "--steps", "60"));
    assert_int_equal(o.status, 0);
    assert_true(whole_of(state, "out/checkpoints/latest/state.json", "skipped") > 20);
    outcome_free(&o);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_ends),
        TEST(test_limit_is_a_key),
        TEST(test_scale_is_searched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
