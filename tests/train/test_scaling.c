// Rates that follow the effective batch: the rules, their bounds, and the run that has
// them. Schedules in samples and tokens.
#include "samples.h"
#include "scratch.h"
#include "snapshot.h"

#include "ops/optimizers/adam/adam.h"
#include "run/scaling.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_MAX = 2048 };

static bool near(double a, double b) {
    return fabs(a - b) <= 1e-12 * fabs(b);
}

// ---- the rules

static tr_hyper base(bool decoupled) {
    tr_hyper hyper = {.lr = .01, .weight_decay = .1, .beta1 = .9, .beta2 = .99};
    const tr_adam_hyper own = {.eps = 1e-8, .decoupled = decoupled};
    memcpy(hyper.own, &own, sizeof own);
    return hyper;
}

static void rules(void **state) {
    char said[TR_SCALED_TEXT];
    (void)state;
    for (int rule = TR_SCALING_NONE; rule <= TR_SCALING_ADAM; rule++) {
        tr_scaling scaling = {(tr_scaling_rule)rule, 16};
        tr_hyper h = base(true);
        tr__scaling_apply(&scaling, &tr__optimizer_adam, 64, &h, said);
        bool adam = rule == TR_SCALING_ADAM;
        double rate = rule == TR_SCALING_LINEAR ? 4 : rule == TR_SCALING_NONE ? 1 : 2;
        assert_true(near(tr__scaling_rate(&scaling, 64), rate));
        assert_true(near(h.lr, .01 * rate));
        assert_true(near(h.beta1, adam ? .6 : .9) && near(h.beta2, adam ? .96 : .99));
        assert_true(near(tr__adam_hyper(&h).eps, adam ? 5e-9 : 1e-8));
        assert_true(near(h.weight_decay, adam ? .2 : .1));
    }
    // What is added to the gradient is part of the loss, and stays.
    tr_scaling adam = {TR_SCALING_ADAM, 16};
    tr_hyper h = base(false);
    tr__scaling_apply(&adam, &tr__optimizer_adam, 4, &h, NULL);
    assert_true(near(h.weight_decay, .1) && near(h.beta1, .975) && near(h.lr, .005));
    assert_string_equal(said, "eps 1e-08 becomes 5e-09; weight_decay 0.1 becomes 0.2");
}

static void bounds(void **state) {
    static const double betas[] = {0, .5, .8, .9, .95, .99, .999};
    (void)state;
    for (size_t i = 0; i < sizeof betas / sizeof *betas; i++) {
        for (int64_t reference = 1; reference < 40; reference += 3) {
            tr_scaling adam = {TR_SCALING_ADAM, reference};
            tr_scaling root = {TR_SCALING_SQRT, reference};
            int64_t most = tr__scaling_largest(&adam, betas[i]);
            tr_hyper inside = {.beta1 = betas[i], .beta2 = .999999};
            tr_error err = {0};
            // k < 1 / (1 - beta), in whole samples
            int64_t bound = (int64_t)llround((double)reference / (1 - betas[i]));
            assert_int_equal(most, bound - 1);
            if (most > 0) {
                tr__scaling_apply(&adam, &tr__optimizer_adam, most, &inside, NULL);
                assert_true(inside.beta1 > 0);
            }
            assert_int_equal(tr__scaling_check(&adam, most, betas[i], "T", &err),
                             TR_OK);
            assert_int_equal(tr__scaling_check(&adam, most + 1, betas[i], "T", &err),
                             TR_USAGE);
            assert_int_equal(
                tr__scaling_check(&root, INT64_C(1) << 31, betas[i], "T", &err), TR_OK);
        }
    }
}

// ---- runs

static const char mlp[] =
    "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [6, 9, 3]}, \"steps\": 8, "
    "\"train_batch_size\": %d, \"train_micro_batch_size_per_gpu\": 4, %s}";

static void refused(void **state) {
    static const struct {
        const char *keys, *words;
    } rows[] = {
        {"\"batch_scaling\": {\"rule\": \"sqrt\"}", "batch_scaling.reference_batch"},
        {"\"batch_scaling\": {\"rule\": \"adam\", \"reference_batch\": 2}",
         "k below 10 at most: a batch of up to 19"},
        {"\"batch_scaling\": {\"rule\": \"adam\", \"reference_batch\": 4}, "
         "\"batch_schedule\": [[4, 40]]",
         "the largest batch 40 is k = 10"},
        {"\"batch_scaling\": {\"rule\": \"adam\", \"reference_batch\": 4}, "
         "\"scheduler\": {\"type\": \"OneCycle\", \"params\": {\"cycle_min_lr\": 0.1, "
         "\"cycle_max_lr\": 1}}",
         "0.8 allows k below 5"},
        {"\"batch_scaling\": {\"rule\": \"adam\", \"reference_batch\": 8}, "
         "\"optimizer\": {\"type\": \"SGD\"}",
         "is for Adam and AdamW"},
    };
    samples data;
    (void)state;
    samples_features(&data, 40, 6, 3, 11);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[TEXT_MAX];
        tr_error err = {0};
        tr_run *run = NULL;
        snprintf(text, sizeof text, mlp, 20, rows[i].keys);
        run_options options = {.text = text, .own_train = data.dataset};
        assert_int_equal(run_open(&options, &run, &err), TR_USAGE);
        if (!strstr(err.message, rows[i].words)) {
            fail_msg("%s", err.message);
        }
    }
    samples_free(&data);
}

static void run_text(samples *data, int batch, const char *keys, snapshot *end,
                     tr_step_result *results) {
    char text[2 * TEXT_MAX];
    trial t;
    snprintf(text, sizeof text, mlp, batch, keys);
    trial_open_text(&t, text, data->dataset, NULL);
    trial_steps(&t, 8, results);
    snapshot_take(end, &t);
    trial_close(&t);
}

// A run with a rule is the run whose numbers are those that the rule makes.
static void same_as_written_out(void **state) {
    static const char *const pairs[][2] = {
        {"\"batch_scaling\": {\"rule\": \"linear\", \"reference_batch\": 4}, "
         "\"optimizer\": {\"type\": \"SGD\", \"params\": {\"lr\": 0.0625}}",
         "\"optimizer\": {\"type\": \"SGD\", \"params\": {\"lr\": 0.25}}"},
        {"\"batch_scaling\": {\"rule\": \"adam\", \"reference_batch\": 4}, "
         "\"optimizer\": {\"type\": \"AdamW\", \"params\": {\"lr\": 0.0625, \"betas\": "
         "[0.875, 0.9375], \"eps\": 0.5, \"weight_decay\": 0.25}}",
         "\"optimizer\": {\"type\": \"AdamW\", \"params\": {\"lr\": 0.125, \"betas\": "
         "[0.5, 0.75], \"eps\": 0.25, \"weight_decay\": 0.5}}"},
        {"\"batch_scaling\": {\"rule\": \"sqrt\", \"reference_batch\": 4}, "
         "\"scheduler\": {\"type\": \"WarmupLR\", \"params\": {\"warmup_max_lr\": "
         "0.0625, \"warmup_num_steps\": 4}}",
         "\"scheduler\": {\"type\": \"WarmupLR\", \"params\": {\"warmup_max_lr\": "
         "0.125, \"warmup_num_steps\": 4}}"},
    };
    samples data;
    (void)state;
    samples_features(&data, 40, 6, 3, 11);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        snapshot a, b;
        run_text(&data, 16, pairs[i][0], &a, NULL);
        run_text(&data, 16, pairs[i][1], &b, NULL);
        snapshot_assert_same(&a, &b);
        snapshot_free(&a);
        snapshot_free(&b);
    }
    samples_free(&data);
}

// ---- schedules in samples and tokens

// The rate is a function of the samples that were learned from, whatever the batch.
static void schedules_in_samples(void **state) {
    static const char keys[] =
        "\"optimizer\": {\"type\": \"SGD\", \"params\": {\"lr\": 1}}, "
        "\"scheduler\": {\"type\": \"WarmupDecayLR\", \"unit\": \"%s\", \"params\": "
        "{\"warmup_type\": \"linear\", \"warmup_num_steps\": 16, \"warmup_max_lr\": 1, "
        "\"total_num_steps\": 48}}%s";
    static const char *const batches[] = {"", ", \"batch_schedule\": [[3, 8], [6, 2]]"};
    samples data;
    snapshot end;
    (void)state;
    samples_features(&data, 400, 6, 3, 11);
    for (size_t i = 0; i < 4; i++) {
        char text[TEXT_MAX];
        tr_step_result r[8];
        int64_t seen = 0;
        // A feature's sample is one token.
        snprintf(text, sizeof text, keys, i / 2 ? "tokens" : "samples", batches[i % 2]);
        run_text(&data, 4, text, &end, r);
        for (int s = 0; s < 8; s++) {
            double expected =
                seen < 16 ? (double)seen / 16 : (48.0 - (double)seen) / 32;
            assert_true(fabs(r[s].lr - expected) < 1e-12);
            seen += r[s].batch;
        }
        snapshot_free(&end);
    }
    samples_free(&data);
}

// "auto" lengths are the run's, in the unit of the schedule.
static void lengths_follow(void **state) {
    static const struct {
        const char *keys;
        int64_t total;
    } rows[] = {
        {"\"steps\": 8", 8 * 4},
        {"\"steps\": 8, \"batch_schedule\": [[5, 10]]", 5 * 4 + 3 * 10},
        {"\"epochs\": 3, \"batch_schedule\": [[5, 10]]", 3 * 40},
        {"\"epochs\": 3, \"adaptive_batch\": {\"enabled\": true, \"most\": 9}", 3 * 40},
    };
    samples data;
    (void)state;
    samples_features(&data, 40, 6, 3, 11);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[TEXT_MAX];
        tr_error err = {0};
        tr_run *run = NULL;
        snprintf(text, sizeof text,
                 "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [6, 3]}, "
                 "\"train_batch_size\": 4, \"train_micro_batch_size_per_gpu\": 2, "
                 "\"scheduler\": {\"type\": \"WarmupDecayLR\", \"unit\": \"samples\"}, "
                 "%s}",
                 rows[i].keys);
        run_options options = {.text = text, .own_train = data.dataset};
        trial_ok(run_open(&options, &run, &err), &err);
        assert_int_equal(run->settings.schedule.total_steps, rows[i].total);
        tr_run_destroy(run);
    }
    samples_free(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules),
        cmocka_unit_test(bounds),
        cmocka_unit_test(refused),
        cmocka_unit_test(same_as_written_out),
        cmocka_unit_test(schedules_in_samples),
        cmocka_unit_test(lengths_follow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
