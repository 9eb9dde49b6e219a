// A trained model on data: as transformers computes it, as the training's own
// evaluation does, and for a program's own model.
#include "train/own_model.h"
#include "train/samples.h"
#include "train/scratch.h"
#include "train/stored.h"
#include "train/trial.h"

#include <tranche/sample.h>

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GOLDEN TR_TEST_DATA "/goldens/gpt2"

enum { SAMPLES = 2, POSITIONS = 16, WORDS = 61 };

// The ids of the golden logits and one more, as a file of two windows.
static void write_ids(const char *path, int32_t *ids) {
    tr_tensor_set *set = NULL;
    uint16_t tokens[SAMPLES * POSITIONS + 1] = {0};
    assert_int_equal(tr__tensor_set_open(GOLDEN "/forward.safetensors", &set, NULL), 0);
    const tr_stored_tensor *stored = tr__tensor_set_find(set, "input_ids");
    assert_non_null(stored);
    assert_int_equal(tr__tensor_read(set, stored, 0, SAMPLES * POSITIONS, ids, NULL),
                     TR_OK);
    for (int i = 0; i < SAMPLES * POSITIONS; i++) {
        tokens[i] = (uint16_t)ids[i];
    }
    ids[SAMPLES * POSITIONS] = 0;
    tr__tensor_set_close(set);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(tokens, sizeof tokens, 1, file), 1);
    fclose(file);
}

static double loss_of(const double *logits, int32_t target) {
    double total = 0;
    for (int v = 0; v < WORDS; v++) {
        total += exp(logits[v] - logits[target]);
    }
    return log(total);
}

// Logits, loss, perplexity and accuracy from transformers' logits, in batches of one
// and of two.
static void as_transformers(void **state) {
    const char *path = scratch_path(state, "ids.bin");
    int32_t ids[SAMPLES * POSITIONS + 1];
    tr_tensor_set *set = NULL;
    write_ids(path, ids);
    assert_int_equal(tr__tensor_set_open(GOLDEN "/forward.safetensors", &set, NULL), 0);
    double *want = stored_values(set, "logits", SAMPLES * POSITIONS * WORDS);
    double loss = 0;
    for (int i = 0; i < SAMPLES * POSITIONS; i++) {
        loss += loss_of(want + i * WORDS, ids[i + 1]) / (SAMPLES * POSITIONS);
    }
    for (int64_t batch = 1; batch <= 2; batch++) {
        const char *data[] = {path};
        tr_evaluator_options options = {.size = sizeof options,
                                        .path = GOLDEN "/initial",
                                        .data = data,
                                        .data_count = 1,
                                        .format = "tokens",
                                        .micro_batch = batch};
        tr_evaluator *e = NULL;
        tr_error err = {0};
        tr_predictions predictions;
        if (tr_evaluator_create(&options, &e, &err) != TR_OK) {
            fail_msg("%s", err.message);
        }
        assert_int_equal(tr_evaluator_samples(e), SAMPLES);
        for (int64_t done = 0; done < SAMPLES; done += predictions.count) {
            assert_int_equal(tr_evaluator_next(e, &predictions, &err), TR_OK);
            assert_int_equal(predictions.count, batch);
            for (int64_t i = 0; i < batch * POSITIONS * WORDS; i++) {
                double wanted = want[done * POSITIONS * WORDS + i];
                assert_float_equal(predictions.logits[i], wanted, 2e-5);
            }
        }
        assert_int_equal(tr_evaluator_next(e, &predictions, &err), TR_OK);
        assert_int_equal(predictions.count, 0);
        tr_evaluated result = tr_evaluator_result(e);
        assert_float_equal(result.loss, loss, 1e-5);
        assert_float_equal(result.perplexity, exp(result.loss), 1e-9);
        assert_true(isnan(result.bits_per_byte));
        assert_int_equal(result.targets, SAMPLES * POSITIONS);
        tr_evaluator_destroy(e);
    }
    free(want);
    tr__tensor_set_close(set);
}

// What the engine evaluates with the same weights, for a model that only the program
// knows; a sample without a target counts for nothing.
static void as_the_engine(void **state) {
    const char *out = scratch_path(state, "own");
    char text[PATH_MAX + 256];
    own_model own;
    samples data;
    trial t;
    tr_step_result results[6];
    tr_evaluation engine;
    tr_evaluated result;
    snprintf(text, sizeof text,
             "{\"train_batch_size\": 8, \"steps\": 6, \"out\": \"%s\", \"optimizer\": "
             "{\"params\": {\"lr\": 0.01}}}",
             out);
    own_model_make(&own, false, 0.1f);
    samples_features(&data, 29, OWN_FEATURES, OWN_CLASSES, 1);
    samples_mask(&data, 9, 15);
    run_options options = {.text = text,
                           .own_model = &own.model,
                           .own_train = data.dataset,
                           .own_validation = data.dataset,
                           .resume = "never"};
    trial_open(&t, &options);
    trial_steps(&t, 6, results);
    assert_int_equal(tr_engine_evaluate(t.engine, 0, &engine, NULL), TR_OK);
    assert_int_equal(tr_engine_save(t.engine, NULL), TR_OK);
    trial_close(&t);
    for (int64_t batch = 0; batch <= 30; batch += 7) { // 0: chosen
        tr_error err = {0};
        tr_evaluator_options ask = {.size = sizeof ask,
                                    .path = out,
                                    .own_model = &own.model,
                                    .own_data = data.dataset,
                                    .micro_batch = batch};
        if (tr_evaluate(&ask, &result, &err) != TR_OK) {
            fail_msg("%s", err.message);
        }
        assert_float_equal(result.loss, engine.loss, 1e-6);
        assert_float_equal(result.accuracy, engine.accuracy, 1e-9);
        assert_int_equal(result.samples, 29);
        assert_int_equal(result.targets, 29 - 6);
    }
    samples_free(&data);
}

// The logits of rows that the caller has are those of a data set of these rows, however
// many are computed together, and no data are needed for them.
static void rows_of_the_caller(void **state) {
    enum { COUNT = 29 };
    const char *out = scratch_path(state, "own");
    char text[PATH_MAX + 256];
    static float logits[COUNT * OWN_CLASSES];
    own_model own;
    samples data;
    trial t;
    tr_error err = {0}, null = {0}, none = {0};
    snprintf(text, sizeof text,
             "{\"train_batch_size\": 8, \"steps\": 2, \"out\": \"%s\", \"optimizer\": "
             "{\"params\": {\"lr\": 0.01}}}",
             out);
    own_model_make(&own, false, 0.1f);
    samples_features(&data, COUNT, OWN_FEATURES, OWN_CLASSES, 1);
    run_options options = {.text = text,
                           .own_model = &own.model,
                           .own_train = data.dataset,
                           .resume = "never"};
    trial_open(&t, &options);
    trial_steps(&t, 2, NULL);
    trial_ok(tr_engine_save(t.engine, &err), &err);
    trial_close(&t);
    for (int64_t batch = 0; batch <= 30; batch += 10) { // 0: chosen
        tr_evaluator *e = NULL, *asked = NULL;
        tr_predictions p = {.count = 1};
        const void *rows[2] = {data.features, NULL};
        tr_evaluator_options how = TR_EVALUATOR_OPTIONS_INIT;
        how.path = out;
        how.own_model = &own.model;
        how.micro_batch = batch;
        how.rows_only = true;
        trial_ok(tr_evaluator_create(&how, &asked, &err), &err);
        how.rows_only = false;
        how.own_data = data.dataset;
        trial_ok(tr_evaluator_create(&how, &e, &err), &err);
        trial_ok(tr_evaluator_ask(asked, rows, COUNT, logits, &err), &err);
        while (p.count > 0) {
            trial_ok(tr_evaluator_next(e, &p, &err), &err);
            for (int64_t i = 0; i < p.count * OWN_CLASSES; i++) {
                assert_float_equal(p.logits[i], logits[p.first * OWN_CLASSES + i],
                                   1e-5);
            }
        }
        trial_ok(tr_evaluator_next(asked, &p, &err), &err);
        assert_int_equal(p.count, 0);
        rows[0] = NULL;
        assert_int_equal(tr_evaluator_ask(asked, rows, 1, logits, &null), TR_USAGE);
        assert_non_null(strstr(null.message, "rows[0]"));
        rows[0] = data.features;
        assert_int_equal(tr_evaluator_ask(asked, rows, 0, logits, &none), TR_USAGE);
        trial_ok(tr_evaluator_ask(asked, rows, 1, logits, &err), &err);
        tr_evaluator_destroy(asked);
        tr_evaluator_destroy(e);
        null = none = (tr_error){0};
    }
    samples_free(&data);
}

static void wrong_options(void **state) {
    tr_evaluator_options how = {.size = 7};
    tr_evaluator *e = NULL;
    tr_error size = {0}, path = {0};
    (void)state;
    assert_int_equal(tr_evaluator_create(&how, &e, &size), TR_USAGE);
    assert_non_null(strstr(size.message, "TR_EVALUATOR_OPTIONS_INIT"));
    how.size = sizeof how;
    assert_int_equal(tr_evaluator_create(&how, &e, &path), TR_USAGE);
    assert_null(e);
}

static void classes(void **state) {
    static const float logits[] = {-1, 2, 2, 0.5f};
    double p[4], total = 0;
    (void)state;
    assert_int_equal(tr_predict_class(logits, 4, p), 1); // the first of equal ones
    assert_int_equal(tr_predict_class(logits, 4, NULL), 1);
    for (int i = 0; i < 4; i++) {
        total += p[i];
        assert_float_equal(p[i] / p[1], exp((double)logits[i] - 2), 1e-12);
    }
    assert_float_equal(total, 1, 1e-12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(as_transformers, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(as_the_engine, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(rows_of_the_caller, scratch_make,
                                        scratch_remove),
        cmocka_unit_test(wrong_options),
        cmocka_unit_test(classes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
