// Training in 16 bits: near f32, however the batch is cut; to the same bits in
// reproducible mode; and in fp16 with steps that overflow.
// Labels: isa
#include "backend/cpu/isa.h"
#include "precision.h"
#include "scratch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const bf16 = "\"bf16\": {\"enabled\": true}";
static const char *const fp16 = "\"fp16\": {\"enabled\": true}";
static const char *const f32 = "\"bf16\": {\"enabled\": false}";

// A sample's own numbers are rounded alike in every cut, but for products whose order
// of additions depends on their shape; by share of the distance moved.
static void cuts_differ_by_rounding(void **state) {
    static const struct {
        const char *const *precision;
        double share;
    } formats[] = {{&bf16, 0.01}, {&fp16, 0.002}};
    (void)state;
    for (int f = 0; f < 2; f++) {
        samples data;
        precision_outcome uncut, cut;
        precision_samples(&data);
        precision_setting whole = {.precision = *formats[f].precision, .steps = 5};
        precision_run(&whole, &data, 0, &uncut);
        for (int64_t micro = 1; micro <= 5; micro += 2) {
            precision_setting s = whole;
            s.micro = micro;
            s.wave = 2;
            precision_run(&s, &data, 0, &cut);
            assert_true(fabs(cut.last.loss - uncut.last.loss) <
                        formats[f].share / 10 * uncut.last.loss);
            snapshot_assert_close(&uncut.start, &uncut.end, &cut.end, formats[f].share,
                                  whole.precision);
            precision_outcome_free(&cut);
        }
        precision_outcome_free(&uncut);
        samples_free(&data);
    }
}

// Where things live and what is made again changes no bit; in reproducible mode, nor
// does the wave.
static void some_things_change_no_bit(void **state) {
    static const char away[] = "\"offload_optimizer\": {\"device\": \"cpu\"}, "
                               "\"offload_param\": {\"device\": \"cpu\"}";
    static const char on_nvme[] =
        "\"offload_optimizer\": {\"device\": \"nvme\", \"nvme_path\": \"/tmp\"}, "
        "\"offload_param\": {\"device\": \"nvme\", \"nvme_path\": \"/tmp\"}";
    static const char states[] =
        "\"offload_optimizer\": {\"device\": \"nvme\", \"nvme_path\": \"/tmp\"}";
    (void)state;
    for (int f = 0; f < 2; f++) {
        const char *precision = f ? fp16 : bf16;
        const precision_setting settings[] = {
            {precision, 3, 4, 0, false, NULL, 5, NULL},
            {precision, 3, 4, 2, false, NULL, 5, NULL},
            {precision, 3, 4, 0, false, away, 5, NULL},
            {precision, 3, 4, 0, false, on_nvme, 5, NULL},
            {precision, 3, 4, 2, false, states, 5, NULL},
            {precision, 3, 4, 1, true, away, 5, NULL},
            {precision, 3, 1, 0, true, NULL, 5, NULL},
            {precision, 3, 3, 2, true, NULL, 5, NULL},
            {precision, 3, 4, 0, true, on_nvme, 5, NULL},
        };
        enum { FREE = 5, ALL = sizeof settings / sizeof *settings }; // of waves: from 5
        precision_assert_same(settings, FREE);
        precision_assert_same(settings + FREE, ALL - FREE);
    }
}

static void the_loss_is_that_of_f32(void **state) {
    samples data;
    precision_outcome o[4];
    const precision_setting settings[] = {{.precision = f32, .micro = 4, .steps = 60},
                                          {.precision = bf16, .micro = 4, .steps = 60},
                                          {.precision = fp16, .micro = 4, .steps = 60}};
    (void)state;
    precision_samples(&data);
    for (int i = 0; i < 4; i++) {
        // The last one without products of bf16.
        precision_run(&settings[i % 3 + i / 3], &data, i == 3 ? 1 + TR_ISA_AVX2 : 0,
                      &o[i]);
    }
    assert_true(o[0].last.loss < 3.6); // it has learnt: log 61 is 4.1
    for (int i = 1; i < 4; i++) {
        assert_true(fabs(o[i].last.loss - o[0].last.loss) < 0.01 * o[0].last.loss);
    }
    for (int i = 0; i < 4; i++) {
        precision_outcome_free(&o[i]);
    }
    samples_free(&data);
}

// What moves between ranks and spaces of the parameters is half as much.
static void parameters_take_half(void **state) {
    samples data;
    (void)state;
    precision_samples(&data);
    tr_traffic traffic[2];
    int64_t device[2];
    for (int f = 0; f < 2; f++) {
        char text[PRECISION_TEXT];
        tr_error err = {0};
        precision_setting s = {.precision = f ? bf16 : f32,
                               .micro = 3,
                               .wave = 2,
                               .homes = "\"stage\": 3",
                               .steps = 1};
        precision_text(&s, text);
        run_options options = {.text = text,
                               .own_train = data.dataset,
                               .plan_only = true,
                               .ranks = 2,
                               .resume = "never"};
        trial t = {0};
        trial_ok(run_open(&options, &t.run, &err), &err);
        trial_ok(tr_plan_make(tr_run_plan_request(t.run), &t.plan, &err), &err);
        traffic[f] = t.plan->traffic;
        device[f] = tr_plan_ledger(t.plan)->bytes[TR_SPACE_DEVICE][TR_LEDGER_boundary];
        int64_t record = t.plan->statistics.doubles * (int64_t)sizeof(double);
        traffic[f].gather -= record; // is gathered too, of doubles
        trial_close(&t);
    }
    assert_int_equal(2 * traffic[1].gather, traffic[0].gather);
    assert_int_equal(traffic[1].reduce, traffic[0].reduce);
    assert_true(2 * device[1] == device[0] && device[1] > 0);
    samples_free(&data);
}

// ---- fp16's scale

static const char *const scaled =
    "\"fp16\": {\"enabled\": true, \"initial_scale_power\": 36, \"hysteresis\": 1, "
    "\"loss_scale_window\": 4, \"min_loss_scale\": %.17g}";

static void a_step_that_overflows_is_skipped(void **state) {
    char precision[256];
    samples data;
    trial t;
    tr_step_result r = TR_STEP_RESULT_INIT;
    double scale = 0x1p36;
    (void)state;
    precision_samples(&data);
    snprintf(precision, sizeof precision, scaled, 1.0);
    precision_setting s = {.precision = precision, .micro = 5, .wave = 3, .steps = 50};
    precision_open(&s, &data, "never", 0, &t);
    snapshot before, after;
    snapshot_take(&before, &t);
    trial_steps(&t, 1, &r);
    snapshot_take(&after, &t);
    assert_true(r.skipped && r.loss_scale == scale && r.update == 0);
    snapshot_assert_same(&before, &after);
    assert_non_null(strstr(tr_engine_blame(t.engine), "micro-batch 0 of the step"));
    assert_non_null(strstr(tr_engine_blame(t.engine),
                           "head_backward with transformer.wte.weight in head"));
    for (int i = 0; i < 30 && r.skipped; i++) { // halved until it fits
        scale /= 2;
        trial_steps(&t, 1, &r);
        assert_true(r.loss_scale == scale);
    }
    assert_false(r.skipped);
    assert_true(r.update == 1 && isfinite(r.grad_norm));
    assert_string_equal(tr_engine_blame(t.engine), "");
    snapshot_free(&before);
    snapshot_free(&after);
    trial_close(&t);
    samples_free(&data);
}

// One sample of the third micro-batch is too large for the first layer.
static void the_first_tensor_is_named(void **state) {
    enum { FEATURES = 7, HIDDEN = 9 };
    float ones[FEATURES * HIDDEN];
    samples data;
    trial t;
    tr_error err = {0};
    tr_step_result r = TR_STEP_RESULT_INIT;
    (void)state;
    samples_features(&data, 6, FEATURES, 5, 3);
    for (int i = 0; i < FEATURES; i++) {
        data.features[4 * FEATURES + i] = 60000;
    }
    for (int i = 0; i < FEATURES * HIDDEN; i++) {
        ones[i] = 1;
    }
    trial_open_text(
        &t,
        "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [7, 9, 5]}, "
        "\"data\": {\"order\": \"sequential\"}, \"steps\": 2, "
        "\"train_batch_size\": 6, \"train_micro_batch_size_per_gpu\": 2, "
        "\"execution\": {\"wave\": 2}, \"fp16\": {\"enabled\": true}, "
        "\"out\": \"unused\"}",
        data.dataset, NULL);
    trial_ok(tr_engine_write(t.engine, "layers.0.weight", "values", 0,
                             FEATURES * HIDDEN, ones, &err),
             &err);
    trial_steps(&t, 1, &r);
    assert_true(r.skipped);
    const char *blame = tr_engine_blame(t.engine);
    const char expected[] = "first in micro-batch 2 of the step, the output of linear "
                            "with layers.0.weight in ";
    assert_memory_equal(blame, expected, sizeof expected - 1);
    trial_close(&t);
    samples_free(&data);
}

static void the_smallest_scale_ends_the_run(void **state) {
    char precision[256];
    samples data;
    trial t;
    tr_error err = {0};
    tr_step_result r = TR_STEP_RESULT_INIT;
    (void)state;
    precision_samples(&data);
    snprintf(precision, sizeof precision, scaled, 0x1p36);
    precision_setting s = {.precision = precision, .steps = 5};
    precision_open(&s, &data, "never", 0, &t);
    assert_int_equal(tr_engine_step(t.engine, &r, &err), TR_NUMBERS);
    assert_non_null(strstr(err.message, "smallest loss scale"));
    assert_int_equal(tr_status_exit(TR_NUMBERS), 7);
    trial_close(&t);
    samples_free(&data);
}

static void a_fixed_scale_stays(void **state) {
    samples data;
    trial t;
    tr_step_result r[3];
    (void)state;
    precision_samples(&data);
    precision_setting s = {
        .precision = "\"fp16\": {\"enabled\": true, \"loss_scale\": 1e12}", .steps = 3};
    precision_open(&s, &data, "never", 0, &t);
    trial_steps(&t, 3, r);
    for (int i = 0; i < 3; i++) {
        assert_true(r[i].skipped && r[i].loss_scale == 1e12);
    }
    trial_close(&t);
    samples_free(&data);
}

// A checkpoint in the middle of a falling scale brings it back, and the same bits.
static void the_scale_is_in_checkpoints(void **state) {
    char precision[256];
    samples data;
    trial t;
    tr_error err = {0};
    tr_step_result straight[8], resumed[4];
    snapshot ends[2];
    precision_samples(&data);
    snprintf(precision, sizeof precision, scaled, 1.0);
    precision_setting s = {.precision = precision,
                           .micro = 4,
                           .steps = 8,
                           .out = scratch_path(state, "out")};
    precision_open(&s, &data, "never", 0, &t);
    trial_steps(&t, 8, straight);
    snapshot_take(&ends[0], &t);
    trial_close(&t);
    precision_open(&s, &data, "never", 0, &t);
    trial_steps(&t, 4, NULL);
    trial_ok(tr_engine_save(t.engine, &err), &err);
    trial_close(&t);
    precision_open(&s, &data, "auto", 0, &t);
    trial_steps(&t, 4, resumed);
    snapshot_take(&ends[1], &t);
    trial_close(&t);
    snapshot_assert_same(&ends[0], &ends[1]);
    for (int i = 0; i < 4; i++) {
        assert_true(resumed[i].loss_scale == straight[4 + i].loss_scale);
        assert_true(resumed[i].loss == straight[4 + i].loss);
    }
    assert_true(straight[7].loss_scale < straight[4].loss_scale);
    snapshot_free(&ends[0]);
    snapshot_free(&ends[1]);
    samples_free(&data);
}

static void both_are_refused(void **state) {
    tr_run *refused = NULL;
    tr_error err = {0};
    samples data;
    char text[PRECISION_TEXT];
    (void)state;
    precision_samples(&data);
    precision_setting s = {
        .precision = "\"bf16\": {\"enabled\": true}, \"fp16\": {\"enabled\": true}",
        .steps = 1};
    precision_text(&s, text);
    run_options options = {.text = text, .own_train = data.dataset};
    assert_int_equal(run_open(&options, &refused, &err), TR_USAGE);
    assert_non_null(strstr(err.message, "keep one"));
    samples_free(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts_differ_by_rounding),
        cmocka_unit_test(some_things_change_no_bit),
        cmocka_unit_test(the_loss_is_that_of_f32),
        cmocka_unit_test(parameters_take_half),
        cmocka_unit_test(a_step_that_overflows_is_skipped),
        cmocka_unit_test(the_first_tensor_is_named),
        cmocka_unit_test(the_smallest_scale_ends_the_run),
        cmocka_unit_test(a_fixed_scale_stays),
        cmocka_unit_test_setup_teardown(the_scale_is_in_checkpoints, scratch_make,
                                        scratch_remove),
        cmocka_unit_test(both_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
