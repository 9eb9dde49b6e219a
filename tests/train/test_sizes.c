// A struct of another version's size is refused where it is handed over, and what it
// was handed to goes on as before.
#include "adapter.h"
#include "own_model.h"
#include "samples.h"
#include "scratch.h"
#include "snapshot.h"

#include <tranche/checkpoint.h>
#include <tranche/extend/version.h>
#include <tranche/sample.h>

#include <stdio.h>
#include <string.h>

enum { FEATURES = 6, CLASSES = 3, TEXT_MAX = 1024 };

static void refused(tr_status status, const tr_error *err, const char *type,
                    const char *macro) {
    assert_int_equal(status, TR_USAGE);
    assert_int_equal(err->status, TR_USAGE);
    if (!strstr(err->message, type) || !strstr(err->message, macro)) {
        fail_msg("\"%s\" does not name %s and %s", err->message, type, macro);
    }
}

// Sizes that this version does not know.
static const size_t off[] = {(size_t)-1, (size_t)-8, 8, 1 << 20};
enum { OFF = sizeof off / sizeof *off };

static void results_of_an_engine(void **state) {
    samples data;
    trial t;
    char text[TEXT_MAX];
    (void)state;
    samples_features(&data, 40, FEATURES, CLASSES, 5);
    snprintf(text, sizeof text,
             "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [6, 9, 3]}, "
             "\"train_batch_size\": 8, \"steps\": 3, \"out\": \"unused\"}");
    trial_open_text(&t, text, data.dataset, data.dataset);
    for (size_t i = 0; i < OFF; i++) {
        tr_step_result result = TR_STEP_RESULT_INIT;
        tr_evaluation evaluation = TR_EVALUATION_INIT;
        tr_error step = {0}, evaluated = {0};
        result.size += off[i];
        evaluation.size += off[i];
        result.step = 77;
        refused(tr_engine_step(t.engine, &result, &step), &step, "tr_step_result",
                "TR_STEP_RESULT_INIT");
        assert_int_equal(result.step, 77);
        refused(tr_engine_evaluate(t.engine, 0, &evaluation, &evaluated), &evaluated,
                "tr_evaluation", "TR_EVALUATION_INIT");
        assert_int_equal(tr_engine_steps_done(t.engine), 0);
    }
    trial_steps(&t, 1, NULL);
    trial_close(&t);
    samples_free(&data);
}

static tr_status read_nothing(void *user, const int64_t *index, int64_t count,
                              void *const *rows, tr_error *err) {
    (void)user, (void)index, (void)count, (void)rows;
    return tr_fail(err, TR_DATA, "nothing is read here");
}

static void sources_of_data(void **state) {
    tr_dataset *data = NULL;
    tr_error good = {0};
    (void)state;
    tr_dataset_source source = TR_DATASET_SOURCE_INIT;
    source.samples = 3;
    source.tensors = tr_batch_features(FEATURES);
    source.classes = CLASSES;
    source.read = read_nothing;
    for (size_t i = 0; i < OFF; i++) {
        tr_dataset_source other = source;
        tr_error err = {0};
        other.size += off[i];
        refused(tr_dataset_create_callback(&other, &data, &err), &err,
                "tr_dataset_source", "TR_DATASET_SOURCE_INIT");
        assert_null(data);
    }
    assert_int_equal(tr_dataset_create_callback(&source, NULL, NULL), TR_USAGE);
    assert_int_equal(tr_dataset_create_callback(NULL, &data, NULL), TR_USAGE);
    trial_ok(tr_dataset_create_callback(&source, &data, &good), &good);
    tr_dataset_destroy(data);
}

static void models_of_the_callers(void **state) {
    own_model own;
    tr_run *run = NULL;
    tr_error good = {0};
    tr_run_parts parts = TR_RUN_PARTS_INIT;
    (void)state;
    own_model_make(&own, false, 0);
    parts.model = &own.model;
    trial_ok(tr_run_create(&run, &good), &good);
    for (size_t i = 0; i < OFF; i++) {
        tr_error err = {0};
        own.model.size = sizeof own.model + off[i];
        refused(tr_run_give(run, &parts, &err), &err, "tr_model", "TR_MODEL_INIT");
    }
    own.model.size = sizeof own.model;
    own.model.rewrites = adapter_rows;
    for (int version = -1; version < 2; version += 2) {
        tr_error err = {0};
        own.model.rewrites_version = TRANCHE_EXTEND_VERSION + version;
        refused(tr_run_give(run, &parts, &err), &err, "rewrites", "compile them again");
    }
    own.model.rewrites_version = TRANCHE_EXTEND_VERSION;
    trial_ok(tr_run_give(run, &parts, &good), &good);
    tr_run_destroy(run);
}

static void results_of_an_evaluator(void **state) {
    const char *out = scratch_path(state, "out");
    char text[PATH_MAX + TEXT_MAX];
    samples data;
    trial t;
    tr_error err = {0};
    tr_evaluator *evaluator = NULL;
    tr_evaluator_options options = TR_EVALUATOR_OPTIONS_INIT;
    samples_features(&data, 40, FEATURES, CLASSES, 5);
    snprintf(text, sizeof text,
             "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [6, 9, 3]}, "
             "\"train_batch_size\": 8, \"steps\": 3, \"out\": \"%s\"}",
             out);
    trial_open_text(&t, text, data.dataset, data.dataset);
    trial_ok(tr_engine_save(t.engine, &err), &err);
    options.path = out;
    options.own_data = data.dataset;
    trial_ok(tr_evaluator_create(&options, &evaluator, &err), &err);
    for (size_t i = 0; i < OFF; i++) {
        tr_predictions predictions = TR_PREDICTIONS_INIT;
        tr_evaluated result = TR_EVALUATED_INIT;
        tr_error next = {0}, asked = {0}, whole = {0};
        predictions.size += off[i];
        result.size += off[i];
        refused(tr_evaluator_next(evaluator, &predictions, &next), &next,
                "tr_predictions", "TR_PREDICTIONS_INIT");
        refused(tr_evaluator_result(evaluator, &result, &asked), &asked, "tr_evaluated",
                "TR_EVALUATED_INIT");
        refused(tr_evaluate(&options, &result, &whole), &whole, "tr_evaluated",
                "TR_EVALUATED_INIT");
    }
    tr_predictions predictions = TR_PREDICTIONS_INIT;
    tr_evaluated result = TR_EVALUATED_INIT;
    trial_ok(tr_evaluator_next(evaluator, &predictions, &err), &err);
    trial_ok(tr_evaluator_result(evaluator, &result, &err), &err);
    assert_true(predictions.count > 0);
    assert_int_equal(result.samples, predictions.count);
    tr_evaluator_destroy(evaluator);
    trial_close(&t);
    samples_free(&data);
}

static void what_the_library_gives_says_its_size(void **state) {
    const char *out = scratch_path(state, "out");
    char text[PATH_MAX + TEXT_MAX];
    samples data;
    trial t;
    tr_error err = {0};
    tr_diff *diff = NULL;
    tr_check *check = NULL;
    samples_features(&data, 40, FEATURES, CLASSES, 5);
    snprintf(text, sizeof text,
             "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [6, 9, 3]}, "
             "\"train_batch_size\": 8, \"steps\": 3, \"out\": \"%s\"}",
             out);
    trial_open_text(&t, text, data.dataset, data.dataset);
    assert_int_equal(tr_run_model(t.run)->size, sizeof(tr_model));
    trial_ok(tr_engine_save(t.engine, &err), &err);
    trial_ok(tr_checkpoint_diff(out, out, &diff, &err), &err);
    assert_int_equal(diff->size, sizeof(tr_diff));
    trial_ok(tr_check_run(t.run, 0, &check, &err), &err);
    assert_int_equal(check->size, sizeof(tr_check));
    tr_check_destroy(check);
    tr_diff_destroy(diff);
    trial_close(&t);
    samples_free(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_of_an_engine),
        cmocka_unit_test(sources_of_data),
        cmocka_unit_test(models_of_the_callers),
        cmocka_unit_test_setup_teardown(results_of_an_evaluator, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(what_the_library_gives_says_its_size,
                                        scratch_make, scratch_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
