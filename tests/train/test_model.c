// A program's own model and ops: a list of units with a mean over the effective batch
// in the middle of one, trained a step at a time and however the batch is cut.
#include "own_model.h"
#include "plan/print/print.h"
#include "samples.h"
#include "scratch.h"
#include "snapshot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FEATURES = OWN_FEATURES, CLASSES = OWN_CLASSES, STEPS = 6, TEXT_MAX = 1024 };

// wave 0: "auto"
static void print_run(int64_t batch, int64_t micro, int64_t wave, int64_t recomputed,
                      const char *out, char text[TEXT_MAX]) {
    char wave_text[32] = "\"auto\"";
    if (wave > 0) {
        snprintf(wave_text, sizeof wave_text, "%d", (int)wave);
    }
    snprintf(text, TEXT_MAX,
             "{\"train_batch_size\": %d, \"train_micro_batch_size_per_gpu\": %d, "
             "\"steps\": %d, \"seed\": 3, \"execution\": {\"wave\": %s, \"threads\": "
             "2}, \"activation_checkpointing\": {\"number_checkpoints\": %d}, "
             "\"optimizer\": {\"params\": {\"lr\": 0.01}}, \"gradient_clipping\": 0.5, "
             "\"out\": \"%s\"}",
             (int)batch, (int)micro, STEPS, wave_text, (int)recomputed, out);
}

typedef struct outcome {
    snapshot start, gradients, end;
    tr_step_result results[STEPS];
} outcome;

static void open_model(const tr_model *model, const samples *data, const char *text,
                       const char *resume, trial *t) {
    run_options options = {.text = text,
                           .own_model = model,
                           .own_train = data->dataset,
                           .own_validation = data->dataset,
                           .resume = resume};
    trial_open(t, &options);
}

static void run(const tr_model *model, const samples *data, const char *text,
                outcome *o) {
    trial t;
    open_model(model, data, text, "never", &t);
    snapshot_take(&o->start, &t);
    trial_steps(&t, 1, o->results);
    snapshot_take_gradients(&o->gradients, &t);
    trial_steps(&t, STEPS - 1, o->results + 1);
    snapshot_take(&o->end, &t);
    assert_int_equal(tr_engine_arena_peak(t.engine),
                     tr_plan_ledger(t.plan)->total[TR_SPACE_DEVICE]);
    trial_close(&t);
}

static void outcome_free(outcome *o) {
    snapshot_free(&o->start);
    snapshot_free(&o->gradients);
    snapshot_free(&o->end);
}

static void check_close(const outcome *cut, const outcome *uncut, const char *what) {
    for (int s = 0; s < STEPS; s++) {
        const tr_step_result *a = &cut->results[s], *b = &uncut->results[s];
        if (!(fabs(a->loss / b->loss - 1) < 1e-5) || a->targets != b->targets) {
            fail_msg("%s: step %d: loss %.9g for %.9g", what, s + 1, a->loss, b->loss);
        }
    }
    snapshot_assert_close(NULL, &uncut->gradients, &cut->gradients, 1e-5, what);
    snapshot_assert_close(&uncut->start, &uncut->end, &cut->end, 1e-4, what);
}

// Short last batches and missing targets included.
static void any_cut_gives_the_same_model(void **state) {
    static const int64_t batches[] = {5, 8, 12, 13};
    own_model own;
    char text[TEXT_MAX], what[64];
    outcome uncut, cut, again;
    samples data;
    (void)state;
    own_model_make(&own, true, 0.1f);
    samples_features(&data, 29, FEATURES, CLASSES, 1);
    samples_mask_some(&data, 4, 2);
    samples_mask(&data, 9, 15);
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        int64_t batch = batches[i];
        print_run(batch, batch, 0, 0, "unused", text);
        run(&own.model, &data, text, &uncut);
        for (int64_t micro = 1; micro < batch; micro += 2) {
            snprintf(what, sizeof what, "T %d, micro-batch %d", (int)batch, (int)micro);
            print_run(batch, micro, 0, 0, "unused", text);
            run(&own.model, &data, text, &cut);
            check_close(&cut, &uncut, what);
            print_run(batch, micro, (batch + micro - 1) / micro, 1 + micro % 3,
                      "unused", text);
            run(&own.model, &data, text, &again);
            snapshot_assert_same(&again.gradients, &cut.gradients);
            snapshot_assert_same(&again.end, &cut.end);
            outcome_free(&cut);
            outcome_free(&again);
        }
        outcome_free(&uncut);
    }
    samples_free(&data);
}

// The mean is differentiated, too: one small step along the gradient changes the loss
// of the same batch as the gradient says.
static void the_gradient_is_that_of_the_loss(void **state) {
    char text[TEXT_MAX];
    own_model own;
    samples data;
    trial t;
    tr_step_result at, ahead;
    (void)state;
    own_model_make(&own, true, 0);
    samples_features(&data, 6, FEATURES, CLASSES, 1);
    snprintf(text, sizeof text,
             "{\"train_batch_size\": 6, \"train_micro_batch_size_per_gpu\": 2, "
             "\"steps\": 2, \"gradient_clipping\": 0, \"out\": \"unused\", "
             "\"optimizer\": {\"type\": \"SGD\", \"params\": {\"lr\": 1e-4}}}");
    open_model(&own.model, &data, text, "never", &t);
    trial_steps(&t, 1, &at);
    trial_steps(&t, 1, &ahead);
    double slope = (at.loss - ahead.loss) / 1e-4;
    assert_float_equal(slope / (at.grad_norm * at.grad_norm), 1, 0.02);
    trial_close(&t);
    samples_free(&data);
}

static void without_the_mean_it_is_another_model(void **state) {
    own_model centered, plain;
    char text[TEXT_MAX];
    outcome a, b;
    samples data;
    (void)state;
    own_model_make(&centered, true, 0.1f);
    own_model_make(&plain, false, 0.1f);
    samples_features(&data, 29, FEATURES, CLASSES, 1);
    print_run(8, 2, 0, 0, "unused", text);
    run(&centered.model, &data, text, &a);
    run(&plain.model, &data, text, &b);
    snapshot_assert_same(&a.start, &b.start);
    assert_true(fabs(a.results[0].loss - b.results[0].loss) > 1e-3);
    outcome_free(&a);
    outcome_free(&b);
    samples_free(&data);
}

// ---- the wave

static void the_plan_says_why_the_wave_is_whole(void **state) {
    own_model own;
    char text[TEXT_MAX], *printed = NULL;
    size_t bytes = 0;
    tr_error err = {0};
    samples data;
    trial t;
    (void)state;
    own_model_make(&own, true, 0.1f);
    samples_features(&data, 29, FEATURES, CLASSES, 1);
    print_run(8, 3, 0, 0, "unused", text);
    open_model(&own.model, &data, text, "never", &t);
    FILE *memory = open_memstream(&printed, &bytes);
    trial_ok(tr__plan_print(t.plan, memory, &err), &err);
    fclose(memory);
    assert_non_null(strstr(printed, "wave"));
    assert_non_null(strstr(printed, "has an op over the whole effective batch"));
    free(printed);
    trial_close(&t);
    samples_free(&data);
}

static void another_wave_is_an_error(void **state) {
    own_model own;
    (void)state;
    own_model_make(&own, true, 0.1f);
    for (int wave = 1; wave <= 3; wave++) {
        char text[TEXT_MAX];
        tr_error err = {0};
        tr_run *run = NULL;
        tr_plan *plan = NULL;
        print_run(8, 3, wave, 0, "unused", text);
        run_options options = {
            .text = text, .own_model = &own.model, .plan_only = true};
        trial_ok(run_open(&options, &run, &err), &err);
        tr_status status = tr_plan_make(tr_run_plan_request(run), &plan, &err);
        assert_int_equal(status, wave == 3 ? TR_OK : TR_USAGE);
        if (wave < 3) {
            assert_non_null(strstr(err.message, "execution.wave"));
            assert_non_null(strstr(err.message, "second"));
            assert_non_null(strstr(err.message, "3"));
        }
        tr_plan_destroy(plan);
        tr_run_destroy(run);
    }
}

static void refuse_slices(const tr_model *own, const char *text, const char *words) {
    static const char *const set[] = {"execution.vocabulary_slices=3"};
    tr_error err = {0};
    tr_run *run = NULL;
    run_options options = {
        .text = text, .own_model = own, .set = set, .set_count = 1, .plan_only = true};
    assert_int_equal(run_open(&options, &run, &err), TR_USAGE);
    if (!strstr(err.message, words)) {
        fail_msg("%s", err.message);
    }
}

static void a_model_without_a_vocabulary_has_no_slices(void **state) {
    own_model own;
    char text[TEXT_MAX];
    (void)state;
    own_model_make(&own, true, 0);
    print_run(8, 3, 0, 0, "unused", text);
    refuse_slices(&own.model, text,
                  "execution.vocabulary_slices is 3, but the model is");
    refuse_slices(NULL,
                  "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [3, 2]}, "
                  "\"steps\": 1, \"train_batch_size\": 1}",
                  "a model of type mlp has no vocabulary");
    refuse_slices(NULL,
                  "{\"model\": {\"model_type\": \"gpt2\", \"vocab_size\": 2}, "
                  "\"steps\": 1, \"train_batch_size\": 1}",
                  "more than the model's vocabulary of 2");
}

// ---- all else that a run can do

static void it_evaluates_saves_and_resumes(void **state) {
    own_model own;
    char text[TEXT_MAX];
    tr_error err = {0};
    tr_evaluation before, after;
    outcome whole;
    snapshot resumed;
    samples data;
    trial t;
    own_model_make(&own, true, 0.1f);
    samples_features(&data, 29, FEATURES, CLASSES, 1);
    print_run(8, 3, 0, 1, scratch_path(state, "out"), text);
    run(&own.model, &data, text, &whole);
    open_model(&own.model, &data, text, "never", &t);
    trial_steps(&t, 4, NULL);
    trial_ok(tr_engine_evaluate(t.engine, 0, &before, &err), &err);
    trial_ok(tr_engine_save(t.engine, &err), &err);
    trial_close(&t);
    open_model(&own.model, &data, text, "auto", &t);
    trial_ok(tr_engine_evaluate(t.engine, 0, &after, &err), &err);
    assert_memory_equal(&before, &after, sizeof before);
    trial_steps(&t, STEPS - 4, NULL);
    snapshot_take(&resumed, &t);
    snapshot_assert_same(&resumed, &whole.end);
    snapshot_free(&resumed);
    outcome_free(&whole);
    trial_close(&t);
    samples_free(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_cut_gives_the_same_model),
        cmocka_unit_test(the_gradient_is_that_of_the_loss),
        cmocka_unit_test(without_the_mean_it_is_another_model),
        cmocka_unit_test(the_plan_says_why_the_wave_is_whole),
        cmocka_unit_test(another_wave_is_an_error),
        cmocka_unit_test(a_model_without_a_vocabulary_has_no_slices),
        cmocka_unit_test_setup_teardown(it_evaluates_saves_and_resumes, scratch_make,
                                        scratch_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
