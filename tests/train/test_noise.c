// The gradient noise scale: the estimate against noise that is known, against gradients
// of single samples, and against itself in other cuts of the same batch.
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
    tr_run_options options = {
        .text = text, .own_model = model, .own_train = data, .resume = "never"};
    trial_open(t, &options);
}

// ---- known noise

static void known_covariance(void **state) {
    static const int64_t micros[] = {2, 16};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        char text[TEXT_MAX];
        tr_step_result last = {0};
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

static const char mlp[] =
    "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [6, 12, 3]}, \"steps\": "
    "100000, \"train_batch_size\": %d, \"train_micro_batch_size_per_gpu\": %d, "
    "\"noise_scale\": {\"measure\": true, \"smoothing\": 0.9999999}, \"optimizer\": "
    "{\"params\": {\"lr\": 0}}, \"execution\": {\"threads\": 1}, \"seed\": 3}";

enum { SINGLES = 480 };

// tr S / |G|^2 over the data set, from the gradient of every sample.
static double direct_scale(tr_dataset *data) {
    char text[TEXT_MAX];
    double squares = 0, whole = 0;
    double mean[256] = {0};
    trial t;
    snprintf(text, sizeof text, mlp, 1, 1);
    open_text(&t, NULL, data, text);
    for (int i = 0; i < SINGLES; i++) {
        snapshot grads;
        int64_t at = 0;
        trial_steps(&t, 1, NULL);
        snapshot_take_gradients(&grads, &t);
        for (size_t k = 0; k < grads.count; k++) {
            for (int64_t e = 0; e < grads.tensors[k].count; e++, at++) {
                double g = grads.tensors[k].part[0][e]; // the seed is 1 here
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

static void direct_estimate(void **state) {
    static const int cuts[][2] = {{24, 2}, {24, 6}, {20, 7}};
    samples data;
    (void)state;
    samples_features(&data, SINGLES, 6, 3, 11);
    double scale = direct_scale(data.dataset);
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        char text[TEXT_MAX];
        tr_step_result last = {0};
        trial t;
        snprintf(text, sizeof text, mlp, cuts[i][0], cuts[i][1]);
        open_text(&t, NULL, data.dataset, text);
        for (int s = 0; s < 1000; s++) {
            trial_steps(&t, 1, &last);
        }
        if (!(fabs(last.noise_scale / scale - 1) < .15)) {
            fail_msg("%d x %d: %g, directly %g", cuts[i][0], cuts[i][1],
                     last.noise_scale, scale);
        }
        trial_close(&t);
    }
    samples_free(&data);
}

// ---- one step, by hand: tied tensors are left out

static const char gpt2[] =
    "{\"model\": {\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 16, "
    "\"n_head\": 2, \"n_positions\": 8, \"vocab_size\": 31, \"resid_pdrop\": 0, "
    "\"embd_pdrop\": 0, \"attn_pdrop\": 0}, \"data\": {\"order\": \"sequential\"}, "
    "\"steps\": 9, \"train_batch_size\": %d, \"train_micro_batch_size_per_gpu\": 2, "
    "\"noise_scale\": {\"measure\": true}, \"execution\": {\"threads\": 1%s}%s}";

// Squares of the untied gradients of the batch's mean.
static double untied_squares(tr_dataset *data, int batch, double targets) {
    char text[TEXT_MAX];
    double sum = 0, unscale;
    snapshot grads;
    trial t;
    snprintf(text, sizeof text, gpt2, batch, "", "");
    open_text(&t, NULL, data, text);
    trial_steps(&t, 1, NULL);
    snapshot_take_gradients(&grads, &t);
    unscale = t.engine->seed_power / targets;
    for (size_t k = 0; k < grads.count; k++) {
        bool tied = strstr(grads.tensors[k].name, "wte") != NULL;
        for (int64_t e = 0; !tied && e < grads.tensors[k].count; e++) {
            double g = grads.tensors[k].part[0][e] * unscale;
            sum += g * g;
        }
    }
    snapshot_free(&grads);
    trial_close(&t);
    return sum;
}

// Of the first sequence half of the targets are missing: each norm is over its own
// count, and a sample is as much of one as it has targets.
static void one_step(void **state) {
    samples data;
    (void)state;
    samples_tokens(&data, 24, 8, 31, 5);
    for (int k = 0; k < 4; k++) {
        data.target[k] = TR_NO_TARGET;
    }
    double small = untied_squares(data.dataset, 2, 12);
    double big = untied_squares(data.dataset, 6, 44);
    double b = 6.0 * 12 / 44;
    double trace = (small - big) / (1 / b - 1.0 / 6), gradient = big - trace / 6;
    static const char *const ways[][2] = {
        {"", ""},
        {", \"wave\": 3", ""},
        {", \"wave\": 2, \"reproducible\": true", ""},
        {", \"vocabulary_slices\": 3", ""},
        {"", ", \"zero_optimization\": {\"offload_optimizer\": {\"device\": \"cpu\"}}"},
        {", \"wave\": 2",
         ", \"activation_checkpointing\": {\"number_checkpoints\": 9}"},
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char text[TEXT_MAX];
        tr_step_result r;
        trial t;
        snprintf(text, sizeof text, gpt2, 6, ways[i][0], ways[i][1]);
        open_text(&t, NULL, data.dataset, text);
        trial_steps(&t, 1, &r);
        if (!(fabs(r.noise_trace / trace - 1) < 1e-4 &&
              fabs(r.noise_gradient / gradient - 1) < 1e-4)) {
            fail_msg("way %zu: %g %g, by hand %g %g", i, r.noise_trace,
                     r.noise_gradient, trace, gradient);
        }
        trial_close(&t);
    }
    samples_free(&data);
}

// ---- what is not known

static void not_known(void **state) {
    char text[TEXT_MAX];
    samples data;
    tr_step_result r;
    trial t;
    (void)state;
    samples_tokens(&data, 24, 8, 31, 5);
    snprintf(text, sizeof text, gpt2, 2, "", ""); // one micro-batch
    open_text(&t, NULL, data.dataset, text);
    assert_int_equal(t.plan->request.measure, TR_MEASURE_NEVER);
    trial_steps(&t, 1, &r);
    assert_true(isnan(r.noise_scale) && isnan(r.noise_trace));
    trial_close(&t);
    samples_mask(&data, 2, 24); // one micro-batch with targets
    snprintf(text, sizeof text, gpt2, 6, "", "");
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
        cmocka_unit_test(known_covariance), cmocka_unit_test(direct_estimate),
        cmocka_unit_test(one_step),         cmocka_unit_test(not_known),
        cmocka_unit_test(smoothed_apart),   cmocka_unit_test(in_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
