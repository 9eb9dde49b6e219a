// A struct of another version's size is refused where it is handed over, and what it
// was handed to goes on as before.
#include "adapter.h"
#include "own_model.h"
#include "samples.h"
#include "scratch.h"
#include "snapshot.h"

#include <tranche/checkpoint.h>
#include <tranche/extend/plan.h>
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

static void options_of_data(void **state) {
    const char *folder = scratch_path(state, "");
    tr_dataset *data = NULL;
    (void)state;
    for (size_t i = 0; i < OFF; i++) {
        tr_data_options options = TR_DATA_OPTIONS_INIT;
        tr_survey survey = TR_SURVEY_INIT;
        tr_error opened = {0}, surveyed = {0};
        options.format = "random";
        options.size += off[i];
        survey.size += off[i];
        refused(tr_dataset_open(&options, &data, NULL, &opened), &opened,
                "tr_data_options", "TR_DATA_OPTIONS_INIT");
        assert_null(data);
        refused(tr_data_survey(folder, &survey, &surveyed), &surveyed, "tr_survey",
                "TR_SURVEY_INIT");
    }
}

static void options_of_text(void **state) {
    tr_tokenizer *tokenizer = NULL;
    tr_encoder *encoder = NULL;
    tr_token_ids ids = {0}, types = {0};
    tr_error good = {0};
    (void)state;
    trial_ok(tr_tokenizer_load(TR_TEST_DATA "/tokenizers/gpt2.json", &tokenizer, &good),
             &good);
    trial_ok(tr_encoder_create(tokenizer, &encoder, &good), &good);
    for (size_t i = 0; i < OFF; i++) {
        tr_encode_options options = TR_ENCODE_OPTIONS_INIT;
        tr_text_pair pair = TR_TEXT_PAIR_INIT;
        tr_encode_files files = TR_ENCODE_FILES_INIT;
        tr_error err[4] = {{0}};
        const char *const encode[] = {"tr_encode_options", "TR_ENCODE_OPTIONS_INIT"};
        options.size += off[i];
        pair.size += off[i];
        files.options = &options;
        refused(tr_tokenizer_encode(tokenizer, "a", 1, &options, 1, &ids, &err[0]),
                &err[0], encode[0], encode[1]);
        refused(tr_encoder_encode(encoder, "a", 1, &options, &ids, &err[1]), &err[1],
                encode[0], encode[1]);
        refused(tr_tokenizer_encode_files(tokenizer, &files, &err[2]), &err[2],
                encode[0], encode[1]);
        refused(tr_encoder_encode_pair(encoder, &pair, &ids, &types, NULL, &err[3]),
                &err[3], "tr_text_pair", "TR_TEXT_PAIR_INIT");
    }
    assert_int_equal(ids.count + types.count, 0);
    tr_encoder_destroy(encoder);
    tr_tokenizer_destroy(tokenizer);
}

static void options_of_drawing(void **state) {
    const float logits[] = {1, 2};
    (void)state;
    for (size_t i = 0; i < OFF; i++) {
        tr_sampling how = TR_SAMPLING_INIT;
        tr_error keep = {0}, pick = {0};
        bool kept[2];
        int32_t token = 77;
        how.size += off[i];
        refused(tr_sample_keep(logits, 2, &how, kept, &keep), &keep, "tr_sampling",
                "TR_SAMPLING_INIT");
        refused(tr_sample_pick(logits, 2, &how, 0, &token, &pick), &pick, "tr_sampling",
                "TR_SAMPLING_INIT");
        assert_int_equal(token, 77);
    }
}

static void models_of_a_plan(void **state) {
    own_model own;
    tr_plan *plan = NULL;
    (void)state;
    own_model_make(&own, false, 0);
    for (size_t i = 0; i < OFF; i++) {
        const tr_plan_request request = {.model = &own.model};
        tr_error err = {0};
        own.model.size = sizeof own.model + off[i];
        refused(tr_plan_make(&request, &plan, &err), &err, "tr_model", "TR_MODEL_INIT");
        assert_null(plan);
    }
    assert_int_equal(tr_plan_make(NULL, &plan, NULL), TR_USAGE);
    assert_null(tr_plan_ledger(NULL));
    assert_int_equal(tr_plan_parameters(NULL) + tr_plan_trained(NULL), 0);
    assert_true(tr_plan_flops(NULL) == 0);
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

static void need_size(void *user, const tr_compared *row) {
    assert_int_equal(row->size, sizeof *row);
    ++*(int *)user;
}

static void predictions_say_their_size(const tr_run *run) {
    tr_error err = {0};
    tr_plan *plan = NULL;
    tr_machine *machine = NULL;
    tr_simulated *simulated = NULL;
    int rows = 0;
    trial_ok(tr_machine_open(TR_SOURCE_DIR "/examples/machines/two-cores.json",
                             &machine, &err),
             &err);
    trial_ok(tr_run_make_plan(run, &plan, &err), &err);
    trial_ok(tr_simulate(plan, machine, &simulated, &err), &err);
    assert_int_equal(tr_simulated_result(simulated)->size, sizeof(tr_simulation));
    trial_ok(tr_run_compare(run, NULL, need_size, &rows, &err), &err);
    assert_true(rows > 0);
    tr_simulated_destroy(simulated);
    tr_plan_destroy(plan);
    tr_machine_close(machine);
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
    predictions_say_their_size(t.run);
    tr_check_destroy(check);
    tr_diff_destroy(diff);
    trial_close(&t);
    samples_free(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_of_an_engine),
        cmocka_unit_test(sources_of_data),
        cmocka_unit_test_setup_teardown(options_of_data, scratch_make, scratch_remove),
        cmocka_unit_test(options_of_text),
        cmocka_unit_test(options_of_drawing),
        cmocka_unit_test(models_of_the_callers),
        cmocka_unit_test(models_of_a_plan),
        cmocka_unit_test_setup_teardown(results_of_an_evaluator, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(what_the_library_gives_says_its_size,
                                        scratch_make, scratch_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
