// What is done with numbers that are no numbers, with batches without targets, and what
// an evaluation says.
#include "program.h"
#include "samples.h"
#include "scratch.h"
#include "snapshot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 2048 };

// Four samples a step in the order of the data; `more`: further keys, or "".
static void print_mlp(const char *sizes, const char *out, const char *more,
                      char text[TEXT_MAX]) {
    snprintf(text, TEXT_MAX,
             "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": %s}, "
             "\"train_batch_size\": 4, \"train_micro_batch_size_per_gpu\": 3, "
             "\"steps\": 6, \"data\": {\"order\": \"sequential\"}, \"out\": \"%s\"%s}",
             sizes, out, more);
}

// ---- updates that are skipped

static void check_skipped_step(trial *t, int64_t step, int64_t update) {
    snapshot before, after;
    tr_step_result result = TR_STEP_RESULT_INIT;
    snapshot_take(&before, t);
    trial_steps(t, 1, &result);
    snapshot_take(&after, t);
    assert_true(result.skipped);
    assert_int_equal(result.step, step);
    assert_int_equal(result.update, update);
    snapshot_assert_same(&before, &after);
    snapshot_free(&before);
    snapshot_free(&after);
}

static void check_applied_step(trial *t, int64_t step, int64_t update) {
    tr_step_result result = TR_STEP_RESULT_INIT;
    trial_steps(t, 1, &result);
    assert_false(result.skipped);
    assert_int_equal(result.step, step);
    assert_int_equal(result.update, update);
    assert_true(isfinite(result.loss) && isfinite(result.grad_norm));
}

static void not_finite_changes_nothing(void **state) {
    static const float bad[] = {INFINITY, -INFINITY, NAN, 3e38f};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[TEXT_MAX];
        samples data;
        trial t;
        samples_features(&data, 24, 5, 3, 1);
        // Of the third step; the whole row, so that no ReLU hides it.
        for (int f = 0; f < 5; f++) {
            data.features[9 * 5 + f] = bad[i] * (f % 2 && i == 3 ? -1.0f : 1.0f);
        }
        print_mlp("[5, 64, 3]", "unused", "", text);
        trial_open_text(&t, text, data.dataset, NULL);
        check_applied_step(&t, 1, 1);
        check_applied_step(&t, 2, 2);
        check_skipped_step(&t, 3, 2);
        check_applied_step(&t, 4, 3);
        trial_close(&t);
        samples_free(&data);
    }
}

// The step after a skipped one is the update that the skipped one would have been: as
// in a run whose data lack those samples.
static void a_skipped_step_leaves_no_trace(void **state) {
    char text[TEXT_MAX];
    samples with, without;
    snapshot a, b;
    trial t;
    (void)state;
    print_mlp("[5, 16, 3]", "unused",
              ", \"scheduler\": {\"type\": \"WarmupLR\", \"params\": "
              "{\"warmup_num_steps\": 4}}",
              text);
    samples_features(&with, 24, 5, 3, 1);
    samples_features(&without, 24, 5, 3, 1);
    samples_mask(&with, 8, 12);
    memmove(without.features + 8 * 5, without.features + 12 * 5,
            12 * 5 * sizeof(float));
    memmove(without.target + 8, without.target + 12, 12 * sizeof(int32_t));
    trial_open_text(&t, text, with.dataset, NULL);
    trial_steps(&t, 6, NULL);
    snapshot_take(&a, &t);
    trial_close(&t);
    trial_open_text(&t, text, without.dataset, NULL);
    trial_steps(&t, 5, NULL);
    snapshot_take(&b, &t);
    trial_close(&t);
    snapshot_assert_same(&a, &b);
    snapshot_free(&a);
    snapshot_free(&b);
    samples_free(&with);
    samples_free(&without);
}

static void no_target_changes_nothing(void **state) {
    char text[TEXT_MAX];
    samples data;
    trial t;
    (void)state;
    samples_features(&data, 24, 5, 3, 1);
    samples_mask(&data, 4, 8);
    print_mlp("[5, 16, 3]", "unused", "", text);
    trial_open_text(&t, text, data.dataset, NULL);
    check_applied_step(&t, 1, 1);
    check_skipped_step(&t, 2, 1);
    check_applied_step(&t, 3, 2);
    trial_close(&t);
    samples_free(&data);
}

// ---- what the program says of them

static bool has_line(const char *log, const char *part) {
    char *text = file_text(log);
    bool found = strstr(text, part) != NULL;
    if (!found) {
        print_error("%s\n", text);
    }
    free(text);
    return found;
}

static json_t *step_of(const json_t *metrics, int64_t step) {
    size_t i;
    json_t *line;
    json_array_foreach((json_t *)metrics, i, line) {
        if (json_integer_value(json_object_get(line, "step")) == step &&
            json_object_get(line, "update")) {
            return line;
        }
    }
    fail_msg("no line of step %d", (int)step);
    return NULL;
}

static void check_line(const json_t *line, bool skipped, int64_t update) {
    assert_true(json_is_boolean(json_object_get(line, "skipped")));
    assert_int_equal(json_is_true(json_object_get(line, "skipped")), skipped);
    assert_int_equal(json_integer_value(json_object_get(line, "update")), update);
}

// Row 5 has features that overflow; row 9 to 12 have no label.
static const char *write_csv(void *const *state) {
    char text[4096];
    int length = snprintf(text, sizeof text, "a,b,label\n");
    for (int r = 0; r < 16; r++) {
        const char *a = r == 5 ? "3e38" : "0.5", *b = r == 5 ? "-3e38" : "1.5";
        length += snprintf(text + length, sizeof text - (size_t)length, "%s,%s,%d\n", a,
                           b, r >= 8 && r < 12 ? -100 : r % 3);
    }
    return scratch_text(state, "data.csv", text);
}

static void the_program_says_so(void **state) {
    char text[TEXT_MAX], more[1200];
    const char *out = scratch_path(state, "out");
    const char *log = scratch_path(state, "log");
    snprintf(more, sizeof more, ", \"log\": {\"every_seconds\": 0}");
    print_mlp("[2, 64, 3]", out, more, text);
    const char *run = scratch_text(state, "run.json", text);
    const char *arguments[] = {"train", run,       "--data", write_csv(state),
                               "--set", "steps=5", "--set",  "data.format=csv",
                               NULL};
    program_run(arguments, log, 0);
    json_t *metrics = metrics_read(out);
    check_line(step_of(metrics, 1), false, 1);
    check_line(step_of(metrics, 2), true, 1);
    check_line(step_of(metrics, 3), true, 1);
    check_line(step_of(metrics, 4), false, 2);
    check_line(step_of(metrics, 5), false, 3);
    // What is not finite is null: JSON has no word for it.
    assert_true(json_is_null(json_object_get(step_of(metrics, 3), "loss")));
    json_decref(metrics);
    assert_true(has_line(log, "step 2: loss or gradient is not finite: update skipped "
                              "(1 skipped so far)"));
    assert_true(has_line(log, "step 3: no sample of the batch has a target: update "
                              "skipped (2 skipped so far)"));
}

// ---- evaluation

// The mean loss and accuracy of softmax(W x + b), directly, over samples [0, count).
static tr_evaluation direct(const trial *t, const samples *data, int64_t count,
                            int64_t classes) {
    snapshot all;
    snapshot_take(&all, t);
    const float *w = snapshot_find(&all, "layers.0.weight")->part[0];
    const float *b = snapshot_find(&all, "layers.0.bias")->part[0];
    double loss = 0, right = 0, targets = 0;
    for (int64_t i = 0; i < count; i++) {
        double logit[8], sum = 0;
        int64_t best = 0;
        for (int64_t c = 0; c < classes; c++) {
            logit[c] = b[c];
            for (int64_t f = 0; f < data->width; f++) {
                logit[c] += (double)w[c * data->width + f] *
                            data->features[i * data->width + f];
            }
            sum += exp(logit[c]);
            best = logit[c] > logit[best] ? c : best;
        }
        if (data->target[i] >= 0) {
            loss += log(sum) - logit[data->target[i]];
            right += best == data->target[i];
            targets++;
        }
    }
    snapshot_free(&all);
    return (tr_evaluation){sizeof(tr_evaluation), loss / targets, right / targets,
                           count};
}

static void evaluation_is_the_mean_over_targets(void **state) {
    static const int64_t counts[] = {1, 2, 3, 4, 10, 22, 23, 0, 99};
    char text[TEXT_MAX];
    samples train, validation;
    trial t;
    (void)state;
    samples_features(&train, 40, 6, 5, 1);
    samples_features(&validation, 23, 6, 5, 2);
    samples_mask(&validation, 3, 9);
    print_mlp("[6, 5]", "unused", "", text);
    trial_open_text(&t, text, train.dataset, validation.dataset);
    for (int round = 0; round < 2; round++) { // drawn weights, then trained ones
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            tr_error err = {0};
            tr_evaluation got = TR_EVALUATION_INIT;
            bool all = counts[i] == 0 || counts[i] > 23;
            tr_evaluation want = direct(&t, &validation, all ? 23 : counts[i], 5);
            trial_ok(tr_engine_evaluate(t.engine, counts[i], &got, &err), &err);
            assert_float_equal(got.loss, want.loss, 1e-6);
            assert_float_equal(got.accuracy, want.accuracy, 1e-12);
            assert_int_equal(got.samples, want.samples);
        }
        trial_steps(&t, 5, NULL);
    }
    trial_close(&t);
    samples_free(&train);
    samples_free(&validation);
}

static void print_gpt2(double dropout, char text[TEXT_MAX]) {
    snprintf(text, TEXT_MAX,
             "{\"model\": {\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 24, "
             "\"n_head\": 3, \"n_positions\": 9, \"vocab_size\": 53, \"resid_pdrop\": "
             "%g, \"embd_pdrop\": %g, \"attn_pdrop\": %g}, \"steps\": 8, "
             "\"train_batch_size\": 6, \"train_micro_batch_size_per_gpu\": 2, "
             "\"activation_checkpointing\": {\"number_checkpoints\": 1}, "
             "\"execution\": {\"wave\": 2}, \"out\": \"unused\"}",
             dropout, dropout, dropout);
}

static tr_evaluation evaluate(trial *t) {
    tr_error err = {0};
    tr_evaluation result = TR_EVALUATION_INIT;
    trial_ok(tr_engine_evaluate(t->engine, 0, &result, &err), &err);
    return result;
}

static void evaluation_drops_nothing(void **state) {
    char text[TEXT_MAX];
    tr_evaluation with = TR_EVALUATION_INIT, without = TR_EVALUATION_INIT;
    samples data;
    trial t;
    (void)state;
    samples_tokens(&data, 17, 9, 53, 1);
    print_gpt2(0.5, text);
    trial_open_text(&t, text, data.dataset, data.dataset);
    with = evaluate(&t);
    trial_close(&t);
    print_gpt2(0, text);
    trial_open_text(&t, text, data.dataset, data.dataset);
    without = evaluate(&t);
    trial_close(&t);
    assert_memory_equal(&with, &without, sizeof with);
    samples_free(&data);
}

static void evaluation_does_not_touch_training(void **state) {
    char text[TEXT_MAX];
    snapshot watched, alone;
    samples data, validation;
    trial t;
    (void)state;
    samples_tokens(&data, 17, 9, 53, 1);
    samples_tokens(&validation, 7, 9, 53, 2);
    print_gpt2(0.2, text);
    trial_open_text(&t, text, data.dataset, NULL);
    trial_steps(&t, 8, NULL);
    snapshot_take(&alone, &t);
    trial_close(&t);
    trial_open_text(&t, text, data.dataset, validation.dataset);
    evaluate(&t);
    for (int i = 0; i < 8; i++) {
        trial_steps(&t, 1, NULL);
        tr_evaluation first = evaluate(&t), second = evaluate(&t);
        assert_memory_equal(&first, &second, sizeof first);
    }
    snapshot_take(&watched, &t);
    trial_close(&t);
    snapshot_assert_same(&watched, &alone);
    snapshot_free(&watched);
    snapshot_free(&alone);
    samples_free(&data);
    samples_free(&validation);
}

static void without_validation_data_it_is_an_error(void **state) {
    char text[TEXT_MAX];
    tr_error err = {0};
    tr_evaluation result = TR_EVALUATION_INIT;
    samples data;
    trial t;
    (void)state;
    samples_tokens(&data, 17, 9, 53, 1);
    print_gpt2(0, text);
    trial_open_text(&t, text, data.dataset, NULL);
    assert_int_equal(tr_engine_evaluate(t.engine, 0, &result, &err), TR_USAGE);
    assert_non_null(strstr(err.message, "data.validation"));
    trial_close(&t);
    samples_free(&data);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(not_finite_changes_nothing),
        TEST(a_skipped_step_leaves_no_trace),
        TEST(no_target_changes_nothing),
        TEST(the_program_says_so),
        TEST(evaluation_is_the_mean_over_targets),
        TEST(evaluation_drops_nothing),
        TEST(evaluation_does_not_touch_training),
        TEST(without_validation_data_it_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
