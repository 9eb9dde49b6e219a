// The spike guard: what is a spike, what is done about it, and that a run with a
// poisoned batch ends where a clean one does.
#include "program.h"
#include "samples.h"
#include "scratch.h"
#include "snapshot.h"

#include "train/guard.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 2048 };

static const tr_guard_rules usual = {.action = TR_GUARD_SKIP,
                                     .threshold = 6,
                                     .window = 50,
                                     .after = 10,
                                     .rate_factor = .5,
                                     .warmup_steps = 3,
                                     .limit = 2,
                                     .forgive_steps = 100};

// ---- the spread

static tr_spike look(tr_guard *guard, double loss, double norm) {
    tr_error err = {0};
    tr_spike spike;
    trial_ok(
        tr__guard_look(&usual, guard, loss, norm, isfinite(loss), false, &spike, &err),
        &err);
    return spike;
}

static tr_guard settled(uint64_t *random) {
    tr_guard guard = tr__guard_begin();
    for (int i = 0; i < 60; i++) {
        double loss = 2 + (double)test_between(random, -100, 100) / 1000;
        double norm = exp((double)test_between(random, -300, 300) / 1000);
        assert_int_equal(look(&guard, loss, norm), TR_SPIKE_NONE);
    }
    return guard;
}

static void spikes(void **state) {
    uint64_t random = 1;
    (void)state;
    tr_guard guard = settled(&random), again = guard;
    assert_true(fabs(guard.loss.mean - 2) < .05);
    assert_int_equal(look(&guard, 2.2, 1.5), TR_SPIKE_NONE);
    assert_int_equal(look(&guard, 1e-3, 1e-6), TR_SPIKE_NONE); // below is no spike
    guard = again;
    assert_int_equal(look(&guard, 4, 1), TR_SPIKE_LOSS);
    assert_true(guard.loss.mean < 2.1); // it has not moved the spread by much
    guard = again;
    assert_int_equal(look(&guard, 2, 50), TR_SPIKE_NORM);
    guard = again;
    assert_int_equal(look(&guard, NAN, 1), TR_SPIKE_NOT_FINITE);
    // Early on nobody knows the spread.
    guard = tr__guard_begin();
    for (int i = 0; i < 9; i++) {
        assert_int_equal(look(&guard, i == 8 ? 1e6 : 2, 1), TR_SPIKE_NONE);
    }
}

static void limit(void **state) {
    uint64_t random = 2;
    tr_guard guard = settled(&random), again = guard;
    tr_error err = {0};
    tr_spike spike;
    (void)state;
    look(&guard, NAN, 1);
    look(&guard, NAN, 1);
    assert_int_equal(tr__guard_look(&usual, &guard, NAN, 1, false, false, &spike, &err),
                     TR_NUMBERS);
    assert_non_null(strstr(err.message, "spike_guard.limit 2"));
    // One is forgiven every 100 steps.
    guard = again;
    for (int i = 0; i < 5; i++) {
        look(&guard, NAN, 1);
        for (int s = 0; s < 100; s++) {
            assert_int_equal(look(&guard, 2, 1), TR_SPIKE_NONE);
        }
    }
    // fp16 on its way to a loss scale is none.
    guard = again;
    for (int i = 0; i < 9; i++) {
        assert_int_equal(
            tr__guard_look(&usual, &guard, NAN, NAN, false, true, &spike, &err), TR_OK);
        assert_int_equal(spike, TR_SPIKE_NONE);
    }
}

static void rate(void **state) {
    tr_guard guard = tr__guard_begin();
    static const double expected[] = {.125, .25, .375, .5, .5};
    (void)state;
    assert_true(tr__guard_rate(&usual, &guard) == 1);
    tr__guard_updated(&guard);
    assert_true(tr__guard_rate(&usual, &guard) == 1);
    tr__guard_rolled_back(&usual, 20, 33, &guard);
    for (int i = 0; i < 5; i++) {
        assert_true(tr__guard_rate(&usual, &guard) == expected[i]);
        tr__guard_updated(&guard);
    }
    tr__guard_rolled_back(&usual, 20, 40, &guard);
    assert_true(tr__guard_rate(&usual, &guard) == .0625);
}

// ---- a poisoned run

enum { SAMPLES = 32 * 200, FEATURES = 6, CLASSES = 3, STEPS = 180 };

// One label in five is wrong: the loss has a floor that all good runs come to.
static void make_data(samples *data, bool poisoned) {
    uint64_t random = 9;
    samples_features(data, SAMPLES, FEATURES, CLASSES, 4);
    for (int64_t i = 0; i < SAMPLES; i++) {
        if (test_between(&random, 0, 4) == 0) {
            data->target[i] = (int32_t)test_between(&random, 0, CLASSES - 1);
        }
    }
    for (int64_t i = 70 * 32; poisoned && i < 71 * 32; i++) {
        float *x = data->features + i * FEATURES;
        data->target[i] = (data->target[i] + 1) % CLASSES; // labels replaced
        for (int f = 0; f < FEATURES; f++) {
            x[f] *= 4; // and loud
        }
    }
    for (int64_t i = 100 * 32; poisoned && i < 101 * 32; i++) {
        data->features[i * FEATURES] = NAN;
    }
}

static double end_of(const char *action, const char *out, samples *data,
                     samples *clean) {
    char text[TEXT_MAX];
    tr_error err = {0};
    tr_evaluation result = TR_EVALUATION_INIT;
    trial t;
    snprintf(text, sizeof text,
             "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [6, 16, 3]}, "
             "\"steps\": %d, \"train_batch_size\": 32, "
             "\"train_micro_batch_size_per_gpu\": 8, \"data\": {\"order\": "
             "\"sequential\"}, \"optimizer\": {\"type\": \"AdamW\", \"params\": "
             "{\"lr\": 0.01}}, \"spike_guard\": {\"action\": \"%s\", \"warmup_steps\": "
             "5}, \"checkpoint\": {\"every\": 16}, \"evaluation\": {\"samples\": 64}, "
             "\"execution\": {\"threads\": 1}, \"out\": \"%s\"}",
             STEPS, action, out);
    run_options options = {.text = text,
                           .own_train = data->dataset,
                           .own_validation = clean->dataset,
                           .resume = "never"};
    trial_open(&t, &options);
    trial_ok(tr_run_begin(t.run, t.plan, &err), &err);
    trial_ok(tr_engine_train(t.engine, NULL, &err), &err);
    trial_ok(tr_engine_evaluate(t.engine, 0, &result, &err), &err);
    trial_close(&t);
    return result.loss;
}

static json_t *line_of(json_t *metrics, int64_t step, const char *key) {
    size_t i;
    json_t *line;
    json_array_foreach(metrics, i, line) {
        if (json_integer_value(json_object_get(line, "step")) == step &&
            json_object_get(line, key)) {
            return json_object_get(line, key);
        }
    }
    fail_msg("no %s of step %d", key, (int)step);
    return NULL;
}

// Steps 71 and 101 have the poison.
static void check_metrics(const char *out, const char *action) {
    json_t *metrics = metrics_read(out);
    bool back = strcmp(action, "rollback") == 0;
    assert_string_equal(json_string_value(line_of(metrics, 71, "spike")), "loss");
    assert_string_equal(json_string_value(line_of(metrics, 71, "act")), action);
    assert_int_equal(json_is_true(line_of(metrics, 71, "skipped")),
                     strcmp(action, "warn") != 0);
    assert_string_equal(json_string_value(line_of(metrics, 101, "spike")),
                        "not_finite");
    assert_true(json_is_true(line_of(metrics, 101, "skipped")));
    assert_true(json_is_null(line_of(metrics, 90, "spike")));
    if (back) {
        assert_int_equal(json_integer_value(line_of(metrics, 71, "rollback_to")), 64);
        assert_int_equal(json_integer_value(line_of(metrics, 101, "rollback_to")), 96);
        // Step 72 is the first update after step 64's.
        assert_int_equal(json_integer_value(line_of(metrics, 72, "update")), 65);
        assert_true(json_real_value(line_of(metrics, 180, "guard_rate")) == .25);
    }
    json_decref(metrics);
}

static void survives_poison(void **state) {
    static const char *const actions[] = {"warn", "skip", "rollback"};
    samples clean, poisoned;
    make_data(&clean, false);
    make_data(&poisoned, true);
    double good = end_of("none", scratch_path(state, "clean"), &clean, &clean);
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
        const char *out = scratch_path(state, actions[i]);
        double end = end_of(actions[i], out, &poisoned, &clean);
        if (!(fabs(end / good - 1) < .02)) {
            fail_msg("%s: %g, clean %g", actions[i], end, good);
        }
        check_metrics(out, actions[i]);
    }
    samples_free(&clean);
    samples_free(&poisoned);
}

// Killed after the rollback and resumed: the same steps again, to the bit.
static void resumes_after_rollback(void **state) {
    static const char run[] =
        "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [6, 16, 3]}, "
        "\"steps\": 120, \"train_batch_size\": 32, \"data\": {\"order\": "
        "\"sequential\"}, \"spike_guard\": {\"action\": \"rollback\"}, "
        "\"execution\": {\"threads\": 1}, \"out\": \"%s\"}";
    char text[TEXT_MAX];
    samples data;
    snapshot whole, parts;
    trial t;
    tr_error err = {0};
    make_data(&data, true);
    snprintf(text, sizeof text, run, scratch_path(state, "out"));
    run_options options = {.text = text, .own_train = data.dataset, .resume = "never"};
    for (int stops = 0; stops < 2; stops++) {
        options.resume = "never";
        trial_open(&t, &options);
        for (int s = 1; s <= 120; s++) {
            tr_step_result r = TR_STEP_RESULT_INIT;
            trial_steps(&t, 1, &r);
            if (strcmp(r.act, "rollback") == 0) {
                int64_t to;
                trial_ok(tr_engine_rollback(t.engine, &to, &err), &err);
                // Soon after another one: from before the checkpoint of that.
                assert_int_equal(to, 50);
            }
            if (s == 50 || s == 80) {
                trial_ok(tr_engine_save(t.engine, &err), &err);
                if (stops) {
                    options.resume = "auto";
                    trial_close(&t);
                    trial_open(&t, &options);
                }
            }
        }
        snapshot_take(stops ? &parts : &whole, &t);
        trial_close(&t);
    }
    snapshot_assert_same(&whole, &parts);
    snapshot_free(&whole);
    snapshot_free(&parts);
    samples_free(&data);
}

// The noise scale, which a batch may follow, is of batches that were learned from: one
// wild batch would hide all others for as long as the smoothing looks back.
static void spikes_are_no_noise(void **state) {
    static const char run[] =
        "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [6, 16, 3]}, "
        "\"steps\": 120, \"train_batch_size\": 32, \"train_micro_batch_size_per_gpu\": "
        "8, \"data\": {\"order\": \"sequential\"}, \"noise_scale\": {\"measure\": "
        "true}, \"spike_guard\": {\"action\": \"%s\"}}";
    static const char *const actions[] = {"warn", "skip", "rollback"};
    samples data;
    (void)state;
    make_data(&data, true);
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
        char text[TEXT_MAX];
        tr_step_result r = TR_STEP_RESULT_INIT;
        trial t;
        snprintf(text, sizeof text, run, actions[i]);
        trial_open_text(&t, text, data.dataset, NULL);
        trial_steps(&t, 70, NULL);
        tr_noise before = t.engine->noise;
        assert_int_equal(before.steps, 70);
        trial_steps(&t, 1, &r);
        assert_string_equal(r.act, actions[i]);
        assert_int_equal(t.engine->noise.steps, r.skipped ? 70 : 71);
        assert_int_equal(memcmp(&before, &t.engine->noise, sizeof before) == 0,
                         r.skipped);
        trial_steps(&t, 1, &r);
        assert_false(r.skipped);
        assert_int_equal(t.engine->noise.steps, i == 0 ? 72 : 71);
        trial_close(&t);
    }
    samples_free(&data);
}

// Without a checkpoint there is nothing to go back to.
static void nowhere_to_go(void **state) {
    static const char run[] =
        "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [6, 16, 3]}, "
        "\"steps\": 120, \"train_batch_size\": 32, \"data\": {\"order\": "
        "\"sequential\"}, \"spike_guard\": {\"action\": \"rollback\"}, \"out\": "
        "\"%s\"}";
    char text[TEXT_MAX];
    samples data;
    tr_step_result r[71];
    int64_t to = 5;
    tr_error err = {0};
    trial t;
    make_data(&data, true);
    snprintf(text, sizeof text, run, scratch_path(state, "none"));
    trial_open_text(&t, text, data.dataset, NULL);
    trial_steps(&t, 71, r);
    assert_string_equal(r[70].act, "rollback");
    assert_int_equal(r[70].update, 70);
    trial_ok(tr_engine_rollback(t.engine, &to, &err), &err);
    assert_int_equal(to, -1);
    assert_true(t.engine->guard.rate == 1);
    trial_close(&t);
    samples_free(&data);
}

// The program ends with status 7.
static void the_limit_ends_the_run(void **state) {
    char text[4096], run[TEXT_MAX];
    int length = snprintf(text, sizeof text, "a,b,label\n");
    for (int r = 0; r < 64; r++) {
        const char *a = r == 37 ? "3e38" : "0.5", *b = r == 37 ? "-3e38" : "1.5";
        length += snprintf(text + length, sizeof text - (size_t)length, "%s,%s,%d\n", a,
                           b, r % 3);
    }
    snprintf(run, sizeof run,
             "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [2, 64, 3]}, "
             "\"train_batch_size\": 4, \"steps\": 16, \"data\": {\"format\": \"csv\", "
             "\"order\": \"sequential\"}, \"spike_guard\": {\"action\": \"skip\", "
             "\"limit\": 0}, \"out\": \"%s\"}",
             scratch_path(state, "out"));
    const char *log = scratch_path(state, "log");
    const char *arguments[] = {"train", scratch_text(state, "run.json", run), "--data",
                               scratch_text(state, "data.csv", text), NULL};
    program_run(arguments, log, 7);
    char *said = file_text(log);
    assert_non_null(strstr(said, "more than spike_guard.limit 0"));
    free(said);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spikes),
        cmocka_unit_test(limit),
        cmocka_unit_test(rate),
        cmocka_unit_test_setup_teardown(survives_poison, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(resumes_after_rollback, scratch_make,
                                        scratch_remove),
        cmocka_unit_test(spikes_are_no_noise),
        cmocka_unit_test_setup_teardown(nowhere_to_go, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(the_limit_ends_the_run, scratch_make,
                                        scratch_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
