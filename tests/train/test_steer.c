// Between the steps of an engine: ends that are asked for, rates from outside, and
// calls that do not fit, after which the engine goes on as before.
#include "samples.h"
#include "snapshot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { FEATURES = 6, CLASSES = 3, STEPS = 3, TEXT_MAX = 1024 };

static void open_run(trial *t, samples *data, const char *rate, const char *bias_rate) {
    char text[TEXT_MAX];
    snprintf(text, sizeof text,
             "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [6, 9, 3]}, "
             "\"train_batch_size\": 8, \"steps\": %d, \"seed\": 4, \"optimizer\": "
             "{\"type\": \"SGD\", \"params\": {\"lr\": %s}, \"groups\": [{\"match\": "
             "\"*.bias\", \"lr\": %s}]}, \"out\": \"unused\"}",
             STEPS, rate, bias_rate);
    trial_open_text(t, text, data->dataset, data->dataset);
}

// ---- ends

typedef struct countdown {
    int left, asked; // questions until the answer is yes
} countdown;

static bool is_over(void *user) {
    countdown *c = user;
    c->asked++;
    return c->left-- == 0;
}

static void a_stopped_step_is_made_again(void **state) {
    samples data;
    snapshot ends[2];
    (void)state;
    samples_features(&data, 40, FEATURES, CLASSES, 5);
    for (int stopped = 0; stopped < 2; stopped++) {
        trial t;
        tr_error err = {0};
        countdown count = {.left = 2};
        tr_step_result result = TR_STEP_RESULT_INIT;
        tr_evaluation evaluation = TR_EVALUATION_INIT;
        open_run(&t, &data, "0.1", "0.1");
        trial_steps(&t, 1, NULL);
        if (stopped) {
            trial_ok(tr_engine_stop_when(t.engine, is_over, &count, &err), &err);
            assert_int_equal(tr_engine_step(t.engine, &result, &err), TR_INTERRUPTED);
            assert_int_equal(count.asked, 3);
            assert_int_equal(tr_engine_steps_done(t.engine), 1);
            count.left = 0;
            err = (tr_error){0};
            assert_int_equal(tr_engine_evaluate(t.engine, 0, &evaluation, &err),
                             TR_INTERRUPTED);
            err = (tr_error){0};
            trial_ok(tr_engine_stop_when(t.engine, NULL, NULL, &err), &err);
            trial_ok(tr_engine_evaluate(t.engine, 0, &evaluation, &err), &err);
        }
        trial_steps(&t, 2, NULL);
        snapshot_end(ends, stopped, &t);
    }
    snapshot_free(&ends[0]);
    snapshot_free(&ends[1]);
    samples_free(&data);
}

// ---- rates

static void rates_are_as_in_a_run_file(void **state) {
    samples data;
    snapshot ends[2];
    tr_error err = {0};
    (void)state;
    samples_features(&data, 40, FEATURES, CLASSES, 5);
    for (int outside = 0; outside < 2; outside++) {
        trial t;
        tr_step_result results[STEPS];
        open_run(&t, &data, outside ? "0.5" : "0.03125", outside ? "0.5" : "0.25");
        assert_int_equal(tr_engine_groups(t.engine), 2);
        if (outside) {
            trial_ok(tr_engine_set_rate(t.engine, 0, 0.25, &err), &err);
            trial_ok(tr_engine_set_rate(t.engine, 1, 0.03125, &err), &err);
        }
        trial_steps(&t, STEPS, results);
        assert_true(results[0].lr == 0.03125);
        snapshot_end(ends, outside, &t);
    }
    snapshot_free(&ends[0]);
    snapshot_free(&ends[1]);
    samples_free(&data);
}

// NAN hands a rate back to the run file.
static void a_rate_is_handed_back(void **state) {
    samples data;
    trial t;
    tr_step_result result = TR_STEP_RESULT_INIT;
    tr_error err = {0};
    (void)state;
    samples_features(&data, 40, FEATURES, CLASSES, 5);
    open_run(&t, &data, "0.5", "0.125");
    trial_ok(tr_engine_set_rate(t.engine, 1, 0, &err), &err);
    trial_steps(&t, 1, &result);
    assert_true(result.lr == 0);
    trial_ok(tr_engine_set_rate(t.engine, 1, NAN, &err), &err);
    trial_steps(&t, 1, &result);
    assert_true(result.lr == 0.5);
    trial_close(&t);
    samples_free(&data);
}

// ---- what does not fit

#define REFUSED(call, words)                                                           \
    do {                                                                               \
        tr_error refused = {0};                                                        \
        assert_int_equal((call), TR_USAGE);                                            \
        if (!strstr(refused.message, words)) {                                         \
            fail_msg("\"%s\" does not say \"%s\"", refused.message, words);            \
        }                                                                              \
    } while (0)

static void updates_are_counted_from_what_the_caller_says(void **state) {
    samples data;
    trial t;
    tr_error err = {0};
    tr_step_result result = TR_STEP_RESULT_INIT;
    (void)state;
    samples_features(&data, 40, FEATURES, CLASSES, 5);
    open_run(&t, &data, "0.1", "0.1");
    trial_ok(tr_engine_set_updates(t.engine, 7, &err), &err);
    assert_int_equal(tr_engine_steps_done(t.engine), 7);
    trial_steps(&t, 1, &result);
    assert_int_equal(result.step, 8);
    assert_int_equal(result.update, 8);
    trial_close(&t);
    samples_free(&data);
}

static void bad_calls_change_nothing(void **state) {
    samples data;
    trial t;
    tr_step_result result = TR_STEP_RESULT_INIT;
    tr_evaluation evaluation = TR_EVALUATION_INIT;
    int64_t step = 0;
    (void)state;
    samples_features(&data, 40, FEATURES, CLASSES, 5);
    open_run(&t, &data, "0.1", "0.1");
    REFUSED(tr_engine_step(NULL, &result, &refused), "\"engine\" is NULL");
    REFUSED(tr_engine_step(t.engine, NULL, &refused), "\"result\" is NULL");
    REFUSED(tr_engine_evaluate(NULL, 0, &evaluation, &refused), "\"engine\" is NULL");
    REFUSED(tr_engine_evaluate(t.engine, 0, NULL, &refused), "\"result\" is NULL");
    REFUSED(tr_engine_save(NULL, &refused), "\"engine\" is NULL");
    REFUSED(tr_engine_refresh(NULL, &refused), "\"engine\" is NULL");
    REFUSED(tr_engine_watch(NULL, &refused), "\"engine\" is NULL");
    REFUSED(tr_engine_write_trace(t.engine, NULL, &refused), "\"path\" is NULL");
    REFUSED(tr_engine_rollback(t.engine, NULL, &refused), "\"step\" is NULL");
    REFUSED(tr_engine_rollback(NULL, &step, &refused), "\"engine\" is NULL");
    REFUSED(tr_engine_stop_when(NULL, is_over, NULL, &refused), "\"engine\" is NULL");
    REFUSED(tr_engine_set_rate(NULL, 0, 1, &refused), "\"engine\" is NULL");
    REFUSED(tr_engine_set_rate(t.engine, 2, 1, &refused), "there is no group 2");
    REFUSED(tr_engine_set_updates(NULL, 1, &refused), "\"engine\" is NULL");
    REFUSED(tr_engine_set_updates(t.engine, -1, &refused), "give a number of 0");
    REFUSED(tr_engine_set_rate(t.engine, 0, -1, &refused), "is no learning rate");
    REFUSED(tr_engine_set_rate(t.engine, 0, INFINITY, &refused), "give a number of 0");
    assert_int_equal(tr_engine_groups(NULL), 0);
    assert_int_equal(tr_engine_steps_done(NULL), 0);
    assert_int_equal(tr_engine_arena_peak(NULL), 0);
    assert_int_equal(tr_engine_space_peak(NULL, TR_SPACE_HOST), 0);
    assert_int_equal(tr_engine_space_peak(t.engine, TR_SPACES), 0);
    assert_string_equal(tr_engine_blame(NULL), "");
    assert_null(tr_engine_parameter(NULL, "x", NULL));
    assert_null(tr_engine_parameter(t.engine, NULL, NULL));
    tr_engine_destroy(NULL);
    trial_steps(&t, 1, &result);
    assert_true(isfinite(result.loss));
    trial_close(&t);
    samples_free(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stopped_step_is_made_again),
        cmocka_unit_test(rates_are_as_in_a_run_file),
        cmocka_unit_test(a_rate_is_handed_back),
        cmocka_unit_test(updates_are_counted_from_what_the_caller_says),
        cmocka_unit_test(bad_calls_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
