// The schedules against what DeepSpeed's classes and transformers' schedules give
// (tools/goldens/schedules.py), by hand, and what a run file makes of them.
#include "run/keys/keys.h"
#include "run/resolve/schedule_read.h"
#include "run/say/schedule_say.h"

#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check_rates(const tr_schedule *schedule, double own_lr, const double *rates,
                        int count) {
    for (int u = 1; u <= count; u++) {
        double lr = tr__schedule_at(schedule, u, own_lr).lr;
        if (fabs(lr - rates[u - 1]) > 5e-6) {
            fail_msg("update %d: %.7f, wanted is %.7f", u, lr, rates[u - 1]);
        }
    }
}

#define RATES(...)                                                                     \
    (const double[]){__VA_ARGS__},                                                     \
        sizeof((const double[]){__VA_ARGS__}) / sizeof(double)

static void test_constant(void **state) {
    (void)state;
    tr_schedule schedule = {.kind = TR_SCHEDULE_CONSTANT};
    check_rates(&schedule, 0.25, RATES(.25, .25, .25));
    assert_false(tr__schedule_at(&schedule, 1, 1).has_betas);
}

static void test_warmup(void **state) {
    (void)state;
    tr_schedule s = {.kind = TR_SCHEDULE_WARMUP, .max_lr = 1, .warmup_steps = 4};
    check_rates(&s, 9, RATES(0, 0, .5, .79248, 1, 1, 1, 1, 1, 1));
    s.max_is_own = true;
    check_rates(&s, 3, RATES(0, 0, 1.5, 2.37744, 3, 3));
    s.linear = true;
    s.min_lr = 1;
    check_rates(&s, 3, RATES(1, 1, 1.5, 2, 2.5, 3, 3));
    // Never shorter than 2.
    s = (tr_schedule){.kind = TR_SCHEDULE_WARMUP, .max_lr = 1, .warmup_steps = 0};
    check_rates(&s, 9, RATES(0, 0, 1, 1, 1));
}

static void test_warmup_decay(void **state) {
    (void)state;
    tr_schedule s = {.kind = TR_SCHEDULE_WARMUP_DECAY,
                     .min_lr = .1,
                     .max_lr = 1.1,
                     .linear = true,
                     .warmup_steps = 4,
                     .total_steps = 8};
    check_rates(&s, 9, RATES(.1, .1, .35, .6, .85, 1.1, .85, .6, .35, .1, .1, .1));
    // A warm-up longer than the run: to the top, then down at once.
    s.total_steps = 2;
    check_rates(&s, 9, RATES(.1, .1, .35, .6, .85, .1, .1));
}

static void test_warmup_cosine(void **state) {
    (void)state;
    tr_schedule s = {.kind = TR_SCHEDULE_WARMUP_COSINE,
                     .warmup_steps = 4,
                     .total_steps = 8,
                     .min_ratio = .1,
                     .end_ratio = 1e-4};
    check_rates(&s, 1,
                RATES(0, .1, .55, .81323, 1, .85357, .50005, .14653, .0001, .0001));
    check_rates(&s, 2, RATES(0, .2, 1.1, 1.626466, 2, 1.70714, 1.0001));
}

static void test_range_test(void **state) {
    (void)state;
    tr_schedule s = {
        .kind = TR_SCHEDULE_RANGE_TEST, .min_lr = .5, .range_size = 2, .range_rate = 3};
    check_rates(&s, 1, RATES(.5, 1.25, 2, 2.75, 3.5));
    s.staircase = true;
    check_rates(&s, 1, RATES(.5, .5, 2, 2, 3.5));
}

static const tr_schedule cycle = {.kind = TR_SCHEDULE_ONE_CYCLE,
                                  .min_lr = .1,
                                  .max_lr = 1,
                                  .first_size = 3,
                                  .second_size = 3,
                                  .decay_size = 2,
                                  .decay_lr = .5,
                                  .cycle_momentum = true,
                                  .min_momentum = .8,
                                  .max_momentum = .9};

static void test_one_cycle(void **state) {
    (void)state;
    tr_schedule s = cycle;
    check_rates(&s, 9, RATES(.1, .4, .7, 1, .7, .4, .1, .08, .06667, .05714));
    const double beta1[] = {.8, .8667, .8333, .8, .8333, .8667, .9, .9, .9};
    for (int u = 1; u <= 9; u++) {
        tr_rates rates = tr__schedule_at(&s, u, 9);
        assert_true(rates.has_betas);
        assert_true(fabs(rates.beta1 - beta1[u - 1]) < 5e-5);
        assert_true(rates.beta2 == .99);
    }
    s.decay_size = 0;
    check_rates(&s, 9, RATES(.1, .4, .7, 1, .7, .4, .1, .1, .1));
    s.cycle_momentum = false;
    assert_false(tr__schedule_at(&s, 3, 1).has_betas);
}

static void test_one_cycle_shapes(void **state) {
    (void)state;
    tr_schedule s = cycle;
    s.min_lr = 0;
    s.first_size = 4;
    s.second_size = 2;
    check_rates(&s, 9, RATES(0, .25, .5, .75, 1, .5, 0, 0));
    s.first_stairs = 2;
    s.second_stairs = 1;
    check_rates(&s, 9, RATES(0, 0, .5, .5, 1, 0, 0, 0));
    s = cycle;
    s.second_size = 0;
    check_rates(&s, 9, RATES(.1, .4, .7, .1, .08));
    // The momentum's decay stops short of 1.
    s.decay_momentum = .1;
    assert_true(fabs(tr__schedule_at(&s, 5, 1).beta1 - .9 * 1.05) < 1e-12);
    double last = tr__schedule_at(&s, 1000000, 1).beta1;
    assert_true(last < 1 && last > .999);
}

static tr_config *open_config(const char *text) {
    tr_config *config = NULL;
    tr_error err = {0};
    if (tr__config_parse(&(tr_config_text){"run.json", text, strlen(text)},
                         tr__key_tables, TR_KEY_TABLES, NULL, 0, &config,
                         &err) != TR_OK) {
        fail_msg("%s", err.message);
    }
    return config;
}

static tr_schedule read_schedule(const char *text, int64_t steps) {
    tr_config *config = open_config(text);
    tr_schedule schedule;
    tr_error err = {0};
    if (tr__schedule_read(config, (tr_run_length){steps, 1, false}, &schedule, &err) !=
        TR_OK) {
        fail_msg("%s", err.message);
    }
    tr__config_destroy(config);
    return schedule;
}

static double real_at(const json_t *array, size_t i) {
    const json_t *value = json_array_get(array, i);
    assert_true(json_is_number(value));
    return json_number_value(value);
}

static void check_case(const json_t *c, double own_lr) {
    const json_t *rates = json_object_get(c, "rates");
    const json_t *betas = json_object_get(c, "betas");
    json_t *run = json_pack("{s:O}", "scheduler", json_object_get(c, "scheduler"));
    char *text = json_dumps(run, 0);
    tr_schedule schedule =
        read_schedule(text, json_integer_value(json_object_get(c, "steps")));
    assert_true(json_array_size(rates) > 20);
    for (size_t i = 0; i < json_array_size(rates); i++) {
        tr_rates got = tr__schedule_at(&schedule, (int64_t)i + 1, own_lr);
        if (!(fabs(got.lr - real_at(rates, i)) <= 1e-14)) {
            fail_msg("%s: update %zu: rate %.17g, wanted is %.17g", text, i + 1, got.lr,
                     real_at(rates, i));
        }
        assert_int_equal(got.has_betas, betas != NULL);
        if (betas &&
            !(fabs(got.beta1 - real_at(json_array_get(betas, i), 0)) <= 1e-14 &&
              got.beta2 == real_at(json_array_get(betas, i), 1))) {
            fail_msg("%s: update %zu: betas %.17g and %.17g", text, i + 1, got.beta1,
                     got.beta2);
        }
    }
    free(text);
    json_decref(run);
}

static void test_goldens(void **state) {
    (void)state;
    json_t *all = json_load_file(TR_TEST_DATA "/schedules.json", 0, NULL);
    const json_t *cases = json_object_get(all, "cases");
    assert_int_equal(json_array_size(cases), 31);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        check_case(json_array_get(cases, i),
                   json_number_value(json_object_get(all, "lr")));
    }
    json_decref(all);
}

static void test_read(void **state) {
    (void)state;
    tr_schedule s = read_schedule("{}", 0);
    assert_int_equal(s.kind, TR_SCHEDULE_CONSTANT);
    s = read_schedule("{\"scheduler\": {\"type\": \"WarmupLR\"}}", 0);
    assert_true(s.kind == TR_SCHEDULE_WARMUP && s.max_is_own && !s.linear);
    assert_int_equal(s.warmup_steps, 1000);
    s = read_schedule("{\"scheduler\": {\"type\": \"WarmupDecayLR\"}}", 50);
    assert_true(!s.max_is_own && s.max_lr == .001 && s.total_steps == 50);
    s = read_schedule("{\"scheduler\": {\"type\": \"WarmupDecayLR\", \"params\":"
                      "{\"warmup_max_lr\": \"auto\", \"warmup_num_steps\": \"auto\","
                      "\"warmup_min_lr\": \"auto\", \"total_num_steps\": \"auto\","
                      "\"warmup_type\": \"linear\"}}}",
                      50);
    assert_true(s.max_is_own && s.linear && s.min_lr == 0);
    assert_int_equal(s.total_steps, 50);
    assert_int_equal(s.warmup_steps, 5);
    s = read_schedule("{\"scheduler\": {\"type\": \"WarmupCosineLR\", \"params\":"
                      "{\"total_num_steps\": 8, \"warmup_num_steps\": 4,"
                      "\"warmup_min_ratio\": 0.1}}}",
                      50);
    check_rates(&s, 1, RATES(0, .1, .55, .81323, 1, .85357, .50005));
    s = read_schedule("{\"scheduler\": {\"type\": \"LRRangeTest\"}}", 50);
    check_rates(&s, 1, RATES(1e-3, 1e-3 * (1 + 1 / 2000.), 1e-3 * (1 + 2 / 2000.)));
    s = read_schedule(
        "{\"scheduler\": {\"type\": \"OneCycle\", \"params\": {\"cycle_min_lr\": 0.1,"
        "\"cycle_max_lr\": 1, \"cycle_first_step_size\": 3, \"decay_lr_rate\": 0.5,"
        "\"decay_step_size\": 2}}}",
        50);
    check_rates(&s, 9, RATES(.1, .4, .7, 1, .7, .4, .1, .08, .06667, .05714));
    assert_true(tr__schedule_at(&s, 1, 1).beta1 == .8);
}

// "warmup_steps" of a cosine of 19 updates.
static int64_t warmup_of(const char *value) {
    char text[128];
    snprintf(
        text, sizeof text,
        "{\"scheduler\": {\"type\": \"cosine\", \"params\": {\"warmup_steps\": %s}}}",
        value);
    return read_schedule(text, 19).warmup_steps;
}

// Hugging Face's schedules by tokens: the rate depends on how many there were.
static void test_by_tokens(void **state) {
    (void)state;
    tr_schedule s = read_schedule(
        "{\"scheduler\": {\"type\": \"linear\", \"unit\": \"tokens\", \"params\":"
        " {\"warmup_ratio\": 0.25, \"total_num_steps\": 1000}}}",
        0);
    assert_int_equal(s.warmup_steps, 250);
    assert_int_equal(warmup_of("0.3"), 6);
    assert_int_equal(warmup_of("3"), 3);
    assert_int_equal(tr__schedule_time(&s, 3, 20, 10), 200);
    assert_true(tr__schedule_at_time(&s, 0, 1).lr == 0);
    assert_true(tr__schedule_at_time(&s, 200, 1).lr == 0.8);
    assert_true(fabs(tr__schedule_at_time(&s, 400, 1).lr - 0.8) < 1e-15);
}

static void test_read_errors(void **state) {
    (void)state;
    static const struct {
        const char *text, *words;
    } rows[] = {
        {"{\"scheduler\": {\"type\": \"OneCycle\"}}", "cycle_min_lr"},
        {"{\"scheduler\": {\"type\": \"OneCycle\", \"params\": {\"cycle_min_lr\": 1}}}",
         "cycle_max_lr"},
        {"{\"scheduler\": {\"type\": \"WarmupDecayLR\"}}", "total_num_steps"},
        {"{\"scheduler\": {\"type\": \"linear\"}}", "total_num_steps"},
        {"{\"scheduler\": {\"type\": \"constant_with_warmup\", \"params\":"
         " {\"warmup_ratio\": 0.1}}}",
         "warmup_ratio"},
        {"{\"scheduler\": {\"type\": \"cosine\", \"params\": {\"warmup_ratio\": 0.1,"
         " \"warmup_num_steps\": 3, \"total_num_steps\": 9}}}",
         "two of them"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tr_config *config = open_config(rows[i].text);
        tr_schedule schedule;
        tr_error err = {0};
        assert_int_equal(
            tr__schedule_read(config, (tr_run_length){.update = 1}, &schedule, &err),
            TR_USAGE);
        assert_non_null(strstr(err.message, rows[i].words));
        tr__config_destroy(config);
    }
}

// A run read again from its run.json has the same schedule.
static void test_round_trip(void **state) {
    (void)state;
    static const char *const texts[] = {
        "{\"scheduler\": {\"type\": \"WarmupLR\"}}",
        "{\"scheduler\": {\"type\": \"WarmupDecayLR\"}}",
        "{\"scheduler\": {\"type\": \"WarmupDecayLR\", \"params\": {\"warmup_max_lr\":"
        " \"auto\", \"warmup_num_steps\": \"auto\", \"total_num_steps\": \"auto\"}}}",
        "{\"scheduler\": {\"type\": \"WarmupCosineLR\", \"params\":"
        " {\"cos_min_ratio\": 0.3, \"warmup_min_ratio\": \"auto\"}}}",
        "{\"scheduler\": {\"type\": \"OneCycle\", \"params\": {\"cycle_min_lr\": 0.1,"
        " \"cycle_max_lr\": \"auto\", \"cycle_second_step_size\": 7}}}",
        "{\"scheduler\": {\"type\": \"linear\", \"params\":"
        " {\"warmup_num_steps\": \"auto\"}}}",
        "{\"scheduler\": {\"type\": \"cosine\", \"params\": {\"warmup_ratio\": 0.07,"
        " \"total_num_steps\": \"auto\"}}}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        tr_config *config = open_config(texts[i]);
        tr_schedule first;
        char *text = NULL;
        assert_int_equal(
            tr__schedule_read(config, (tr_run_length){40, 1, false}, &first, NULL),
            TR_OK);
        assert_int_equal(tr__config_settle(config, NULL), TR_OK);
        assert_int_equal(tr__config_write_resolved(config, &text, NULL), TR_OK);
        tr_schedule second = read_schedule(text, 40);
        for (int u = 1; u < 60; u++) {
            tr_rates a = tr__schedule_at(&first, u, .7),
                     b = tr__schedule_at(&second, u, .7);
            assert_true(a.lr == b.lr && a.beta1 == b.beta1 &&
                        a.has_betas == b.has_betas);
        }
        tr__free(text);
        tr__config_destroy(config);
    }
}

// The highest rate behind the end, against every step.
static void test_beyond(void **state) {
    static const double cycles[] = {0.5, 1, 2, 0.7, 0.25, 1.49};
    (void)state;
    for (size_t i = 0; i < sizeof cycles / sizeof *cycles; i++) {
        tr_schedule s = {.kind = TR_SCHEDULE_COSINE,
                         .warmup_steps = 100,
                         .total_steps = 1100,
                         .cycles = cycles[i]};
        double most = 0;
        for (int64_t t = s.total_steps; t <= 4000; t++) {
            most = fmax(most, tr__schedule_at_time(&s, t, 1).lr);
            assert_true(fabs(tr__schedule_most_beyond(&s, t) - most) < 1e-5);
        }
    }
    tr_schedule linear = {.kind = TR_SCHEDULE_LINEAR, .total_steps = 7};
    assert_true(tr__schedule_most_beyond(&linear, 20) == 0);
    tr_schedule decay = {.kind = TR_SCHEDULE_WARMUP_DECAY,
                         .total_steps = 7,
                         .max_lr = 1,
                         .min_lr = 0.125};
    assert_true(tr__schedule_most_beyond(&decay, 20) == 0.125);
}

static void says(const tr_schedule *s, double own, double scale, int64_t updates,
                 const char *words) {
    char text[256];
    tr__schedule_say(s, own, scale, updates, text, sizeof text);
    assert_string_equal(text, words);
}

// The peak, the shape, and where a run ends before it has begun to fall.
static void test_said(void **state) {
    (void)state;
    const tr_schedule constant = {.kind = TR_SCHEDULE_CONSTANT};
    tr_schedule decay = {.kind = TR_SCHEDULE_WARMUP_DECAY,
                         .max_lr = 0.5,
                         .warmup_steps = 10,
                         .total_steps = 100};
    const tr_schedule cosine = {.kind = TR_SCHEDULE_COSINE,
                                .cycles = 0.5,
                                .warmup_steps = 1,
                                .total_steps = 50,
                                .unit = TR_SCHEDULE_SAMPLES};
    says(&constant, 0.25, 2, 10, "rate 0.5, constant");
    says(&decay, 0.1, 1, 100,
         "peak rate 0.5: up over 10 updates (log), then down in a line to 0 at update "
         "100");
    says(&decay, 0.1, 1, 9,
         "peak rate 0.5: up over 10 updates (log), then down in a line to 0 at update "
         "100; the run ends before that, at update 9");
    decay.max_is_own = decay.linear = true;
    says(&decay, 0.1, 1, 0,
         "peak rate 0.1: up over 10 updates (linear), then down in a line to 0 at "
         "update 100");
    says(&cosine, 1, 1, 20,
         "peak rate 1: up over 1 sample, then by a cosine to 0 at sample 50");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constant),         cmocka_unit_test(test_warmup),
        cmocka_unit_test(test_warmup_decay),     cmocka_unit_test(test_warmup_cosine),
        cmocka_unit_test(test_range_test),       cmocka_unit_test(test_one_cycle),
        cmocka_unit_test(test_one_cycle_shapes), cmocka_unit_test(test_read),
        cmocka_unit_test(test_read_errors),      cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_goldens),          cmocka_unit_test(test_by_tokens),
        cmocka_unit_test(test_beyond),           cmocka_unit_test(test_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
