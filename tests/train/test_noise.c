// The gradient noise scale: the estimate against noise that is known, against gradients
// of single samples, and against itself in other cuts of the same batch.
#include "noise_by_hand.h"
#include "quadratic.h"
#include "samples.h"
#include "snapshot.h"

#include "train/noise.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_MAX = 1024 };

static void open_text(trial *t, const tr_model *model, tr_dataset *data,
                      const char *text) {
    run_options options = {
        .text = text, .own_model = model, .own_train = data, .resume = "never"};
    trial_open(t, &options);
}

// ---- known noise

static void known_covariance(void **state) {
    static const int64_t micros[] = {2, 16};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        char text[TEXT_MAX];
        tr_step_result last = TR_STEP_RESULT_INIT;
        tr_dataset *data = quadratic_data(INT64_C(1) << 20);
        trial t;
        snprintf(text, sizeof text,
                 "{\"steps\": 1500, \"train_batch_size\": 64, "
                 "\"train_micro_batch_size_per_gpu\": %d, \"noise_scale\": "
                 "{\"measure\": true, \"smoothing\": 0.9999999}, "
                 "\"optimizer\": {\"params\": {\"lr\": 0}}, \"execution\": "
                 "{\"threads\": 1}}",
                 (int)micros[i]);
        open_text(&t, &quadratic_model, data, text);
        for (int s = 0; s < 1500; s++) {
            trial_steps(&t, 1, &last);
        }
        double scale = quadratic_trace() / quadratic_gradient();
        assert_true(fabs(last.noise_trace / quadratic_trace() - 1) < .05);
        assert_true(fabs(last.noise_gradient / quadratic_gradient() - 1) < .05);
        assert_true(fabs(last.noise_scale / scale - 1) < .05);
        trial_close(&t);
        tr_dataset_destroy(data);
    }
}

// ---- against gradients of single samples

static const char still[] =
    "{\"model\": {%s}, \"steps\": 100000, \"train_batch_size\": %d, "
    "\"train_micro_batch_size_per_gpu\": %d, \"noise_scale\": {\"measure\": true, "
    "\"smoothing\": 0.9999999}, \"optimizer\": {\"params\": {\"lr\": 0}}, "
    "\"execution\": {\"threads\": 1, \"wave\": %d}, \"seed\": 3}";
static const char mlp[] = "\"model_type\": \"mlp\", \"layer_sizes\": [6, 12, 3]";
static const char gpt2[] =
    "\"model_type\": \"gpt2\", \"n_layer\": 1, \"n_embd\": 8, \"n_head\": 2, "
    "\"n_positions\": 4, \"vocab_size\": 11, \"resid_pdrop\": 0, \"embd_pdrop\": 0, "
    "\"attn_pdrop\": 0";

enum { SINGLES = 480, PARAMETERS_MAX = 2048 };

// tr S / |G|^2 over the data set, from the gradient of every sample.
static double direct_scale(const char *model, tr_dataset *data) {
    char text[TEXT_MAX];
    double squares = 0, whole = 0;
    double mean[PARAMETERS_MAX] = {0};
    trial t;
    snprintf(text, sizeof text, still, model, 1, 1, 1);
    open_text(&t, NULL, data, text);
    for (int i = 0; i < SINGLES; i++) {
        tr_step_result r = TR_STEP_RESULT_INIT;
        snapshot grads;
        int64_t at = 0;
        trial_steps(&t, 1, &r);
        double unscale = t.engine->seed_power / (double)r.targets;
        snapshot_take_gradients(&grads, &t);
        for (size_t k = 0; k < grads.count; k++) {
            for (int64_t e = 0; e < grads.tensors[k].count; e++, at++) {
                double g = grads.tensors[k].part[0][e] * unscale;
                squares += g * g / SINGLES;
                mean[at] += g / SINGLES;
            }
        }
        snapshot_free(&grads);
    }
    trial_close(&t);
    for (size_t e = 0; e < sizeof mean / sizeof *mean; e++) {
        whole += mean[e] * mean[e];
    }
    return (squares - whole) / whole;
}

static void estimate(const char *model, tr_dataset *data, double scale,
                     const int cut[3]) {
    char text[TEXT_MAX];
    tr_step_result last = TR_STEP_RESULT_INIT;
    trial t;
    snprintf(text, sizeof text, still, model, cut[0], cut[1], cut[2]);
    open_text(&t, NULL, data, text);
    for (int s = 0; s < 1000; s++) {
        trial_steps(&t, 1, &last);
    }
    if (!(fabs(last.noise_scale / scale - 1) < .15)) {
        fail_msg("%d x %d, wave %d: %g, directly %g", cut[0], cut[1], cut[2],
                 last.noise_scale, scale);
    }
    trial_close(&t);
}

static void direct_estimate(void **state) {
    static const int cuts[][3] = {{24, 2, 1}, {24, 6, 1}, {20, 7, 1}};
    samples data;
    (void)state;
    samples_features(&data, SINGLES, 6, 3, 11);
    double scale = direct_scale(mlp, data.dataset);
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        estimate(mlp, data.dataset, scale, cuts[i]);
    }
    samples_free(&data);
}

// The embedding is the head's weight, too: of both uses together each sample has one
// gradient, and it is the noisiest part.
static void direct_estimate_of_tied(void **state) {
    static const int cuts[][3] = {{24, 2, 1}, {24, 4, 2}, {20, 4, 4}};
    samples data;
    (void)state;
    samples_tokens(&data, SINGLES, 4, 11, 7);
    double scale = direct_scale(gpt2, data.dataset);
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        estimate(gpt2, data.dataset, scale, cuts[i]);
    }
    samples_free(&data);
}

// ---- one step, by hand

typedef struct way {
    int64_t batch;
    int64_t wave; // over which tied tensors are measured; 0: they are left out
    const char *execution, *more;
} way;

static void one_way(samples *data, const way *w) {
    const noise_cut cut = {.ranks = 1, w->batch, .micro = 2, w->wave};
    char text[NOISE_TEXT_MAX];
    double trace, gradient;
    tr_step_result r = TR_STEP_RESULT_INIT;
    trial t;
    noise_by_hand(data, &cut, &trace, &gradient);
    noise_run(text, w->batch, 2, w->execution, w->more);
    open_text(&t, NULL, data->dataset, text);
    trial_steps(&t, 1, &r);
    noise_assert(&r, trace, gradient, text);
    trial_close(&t);
}

// Of the first sequence half of the targets are missing: each norm is over its own
// count, and a sample is as much of one as it has targets. Tied tensors are measured
// over the first wave, but where that is all, or no moment shows what it has added.
static void one_step(void **state) {
    static const char host[] =
        ", \"zero_optimization\": {\"offload_optimizer\": {\"device\": \"cpu\"}}";
    static const way ways[] = {
        {6, 1, "", ""},
        {6, 2, ", \"wave\": 2", ""},
        {6, 0, ", \"wave\": 3", ""},
        {8, 2, ", \"wave\": 2", ""},
        {8, 3, ", \"wave\": 3", ""},
        {7, 3, ", \"wave\": 3", ""},
        {6, 2, ", \"wave\": 2",
         ", \"activation_checkpointing\": {\"number_checkpoints\": 9}"},
        {6, 1, ", \"vocabulary_slices\": 3", ""},
        {6, 2, ", \"vocabulary_slices\": 3, \"wave\": 2", ""},
        {6, 0, ", \"wave\": 2, \"reproducible\": true", ""},
        {6, 0, "", host},
    };
    samples data;
    (void)state;
    samples_tokens(&data, 24, 8, 31, 5);
    for (int k = 0; k < 4; k++) {
        data.target[k] = TR_NO_TARGET;
    }
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        one_way(&data, &ways[i]);
    }
    samples_free(&data);
}

// A step whose later waves have no targets tells nothing of the tied tensor, so it
// tells nothing at all: what is smoothed is always of the same tensors.
static void nothing_of_some(void **state) {
    char text[NOISE_TEXT_MAX];
    samples data;
    tr_step_result r = TR_STEP_RESULT_INIT;
    trial t;
    (void)state;
    samples_tokens(&data, 24, 8, 31, 5);
    samples_mask(&data, 4, 6);
    noise_run(text, 6, 2, ", \"wave\": 2", "");
    open_text(&t, NULL, data.dataset, text);
    trial_steps(&t, 1, &r);
    assert_int_equal(t.engine->noise.steps, 0);
    trial_steps(&t, 1, &r);
    assert_int_equal(t.engine->noise.steps, 1);
    trial_close(&t);
    samples_free(&data);
}

// Measuring reads and does not change a bit of the training.
static void only_read(void **state) {
    static const char *const waves[] = {"", ", \"wave\": 2", ", \"wave\": 3"};
    static const char *const measure[] = {"noise_scale.measure=true",
                                          "noise_scale.measure=false"};
    samples data;
    (void)state;
    samples_tokens(&data, 24, 8, 31, 5);
    for (size_t i = 0; i < sizeof waves / sizeof *waves; i++) {
        snapshot ends[2];
        for (int k = 0; k < 2; k++) {
            char text[NOISE_TEXT_MAX];
            trial t;
            noise_run(text, 8, 2, waves[i], "");
            run_options options = {.text = text,
                                   .own_train = data.dataset,
                                   .set = &measure[k],
                                   .set_count = 1,
                                   .resume = "never"};
            trial_open(&t, &options);
            trial_steps(&t, 4, NULL);
            assert_int_equal(t.plan->request.measure,
                             k ? TR_MEASURE_NEVER : TR_MEASURE_ALWAYS);
            snapshot_end(ends, k, &t);
        }
        snapshot_free(&ends[0]);
        snapshot_free(&ends[1]);
    }
    samples_free(&data);
}

// ---- what is not known

static void not_known(void **state) {
    char text[NOISE_TEXT_MAX];
    samples data;
    tr_step_result r = TR_STEP_RESULT_INIT;
    trial t;
    (void)state;
    samples_tokens(&data, 24, 8, 31, 5);
    noise_run(text, 2, 2, "", ""); // one micro-batch
    open_text(&t, NULL, data.dataset, text);
    assert_int_equal(t.plan->request.measure, TR_MEASURE_NEVER);
    trial_steps(&t, 1, &r);
    assert_true(isnan(r.noise_scale) && isnan(r.noise_trace));
    trial_close(&t);
    samples_mask(&data, 2, 24); // one micro-batch with targets
    noise_run(text, 6, 2, "", "");
    open_text(&t, NULL, data.dataset, text);
    trial_steps(&t, 1, &r);
    assert_true(isnan(r.noise_scale));
    trial_close(&t);
    samples_free(&data);
}

static void smoothed_apart(void **state) {
    tr_noise noise = {0};
    (void)state;
    assert_true(isnan(tr__noise_scale(&noise)));
    tr__noise_add(&noise, .5, 4, 1);
    tr__noise_add(&noise, .5, 10, 4);
    assert_true(fabs(tr__noise_trace(&noise) - 8) < 1e-12);
    assert_true(fabs(tr__noise_gradient(&noise) - 3) < 1e-12);
    assert_true(fabs(tr__noise_scale(&noise) - 8.0 / 3) < 1e-12);
    tr__noise_add(&noise, .5, 10, -40);
    assert_true(isnan(tr__noise_scale(&noise)));
}

static void in_words(void **state) {
    char text[TR_NOISE_TEXT_MAX];
    tr_noise noise = {0};
    (void)state;
    tr__noise_words(&noise, 64, text);
    assert_string_equal(text, "");
    for (int i = 0; i < 50; i++) {
        tr__noise_add(&noise, .99, 192, 1);
    }
    tr__noise_words(&noise, 64, text);
    assert_non_null(strstr(text, "about 192 samples (over 50 steps)"));
    assert_non_null(strstr(text, "T = 64 is well below it"));
    // 1 + 192/128 over 1 + 192/64; 1 + 128/192 over 1 + 64/192
    assert_non_null(strstr(text, "0.62 times the steps and 1.25 times the samples"));
    // 1 + 192/32 over 4; 1 + 32/192 over 4/3
    assert_non_null(strstr(text, "1.75 times the steps and 0.88 times the samples"));
    noise.gradient = -1;
    tr__noise_words(&noise, 64, text);
    assert_non_null(strstr(text, "not known"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_covariance),
        cmocka_unit_test(direct_estimate),
        cmocka_unit_test(direct_estimate_of_tied),
        cmocka_unit_test(one_step),
        cmocka_unit_test(nothing_of_some),
        cmocka_unit_test(only_read),
        cmocka_unit_test(not_known),
        cmocka_unit_test(smoothed_apart),
        cmocka_unit_test(in_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
