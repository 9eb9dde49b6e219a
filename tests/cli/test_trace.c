// The trace of a step, for which no run ends.
#include "command.h"
#include "runs.h"

#include <stdlib.h>
#include <string.h>

// The traced step, the second, has another batch than the first, and another plan.
static void test_batch_changes(void **state) {
    run_file(state, classifier_run,
             ", \"train_micro_batch_size_per_gpu\": 2, \"batch_schedule\": [[1, 12]]");
    free(succeed(state, LIST("train", "run.json", "--trace", "trace.json")));
    json_t *trace = file_json(state, "trace.json");
    json_t *events = json_object_get(trace, "traceEvents"), *event;
    size_t i, backwards = 0;
    json_array_foreach(events, i, event) {
        const char *category = json_string_value(json_object_get(event, "cat"));
        backwards += category && strcmp(category, "backward") == 0;
    }
    assert_int_equal(backwards, 12); // 6 micro-batches of 2 units
    json_decref(trace);
}

// A trace that cannot be written is said, and the run goes on to its end.
static void test_nowhere_to_write(void **state) {
    run_file(state, classifier_run, "");
    outcome o = run(state, LIST("train", "run.json", "--trace", "nothere/trace.json"));
    assert_int_equal(o.status, 0);
    assert_says(o.err, "nothere/trace.json");
    assert_says(o.err, "no trace");
    outcome_free(&o);
    json_t *state_json = file_json(state, "out/checkpoints/latest/state.json");
    assert_int_equal(json_integer_value(json_object_get(state_json, "step")), 8);
    json_decref(state_json);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_batch_changes),
        TEST(test_nowhere_to_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
