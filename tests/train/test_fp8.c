// Training with products in fp8: near bf16, however the batch is cut; to the same bits
// in reproducible mode; in the blocks that the keys name.
// Labels: isa guard
#include "backend/cpu/isa.h"
#include "precision.h"

#include <math.h>
#include <string.h>

static const char *const fp8 = "\"fp8\": {\"enabled\": true}";
static const char *const bf16 = "\"bf16\": {\"enabled\": true}";

// How far rounding alone moves the run: the reference kernels round where others do
// not.
static double distance_of_rounding(const precision_setting *uncut, samples *data,
                                   const precision_outcome *run) {
    const double any = INFINITY;
    precision_outcome other;
    precision_run(uncut, data, PRECISION_REFERENCE, &other);
    double distance =
        snapshot_assert_close(&run->start, &run->end, &other.end, any, "rounding");
    precision_outcome_free(&other);
    return distance;
}

// As in bf16: scales are powers of two, so a micro-batch's own scale rounds its numbers
// as another's would, but for those that are subnormal in 8 bits. Which elements a cut
// rounds otherwise depends on the kernels, and so on the machine.
static void cuts_differ_by_rounding(void **state) {
    samples data;
    precision_outcome uncut, cut;
    precision_setting s = {.precision = fp8, .steps = 5};
    (void)state;
    precision_samples(&data);
    precision_run(&s, &data, 0, &uncut);
    double most = distance_of_rounding(&s, &data, &uncut) / 2;
    assert_true(most > 0 && most < 0.5);
    for (int64_t micro = 1; micro <= 5; micro += 2) { // 5: the last one is short
        s.micro = micro;
        s.wave = 2;
        precision_run(&s, &data, 0, &cut);
        assert_true(fabs(cut.last.loss - uncut.last.loss) < 1e-3 * uncut.last.loss);
        snapshot_assert_close(&uncut.start, &uncut.end, &cut.end, most, "fp8");
        precision_outcome_free(&cut);
    }
    precision_outcome_free(&uncut);
    samples_free(&data);
}

// At one micro-batch a tensor has one scale, wherever and in which wave it is made.
static void placement_and_reproducible_waves_change_no_bit(void **state) {
    static const char away[] = "\"offload_optimizer\": {\"device\": \"cpu\"}, "
                               "\"offload_param\": {\"device\": \"cpu\"}";
    const precision_setting settings[] = {
        {fp8, 3, 4, 0, false, NULL, 5, NULL}, {fp8, 3, 4, 2, false, NULL, 5, NULL},
        {fp8, 3, 4, 0, false, away, 5, NULL}, {fp8, 5, 3, 1, true, away, 5, NULL},
        {fp8, 5, 1, 0, true, NULL, 5, NULL},  {fp8, 5, 2, 2, true, NULL, 5, NULL},
    };
    enum { FREE = 3, ALL = sizeof settings / sizeof *settings };
    (void)state;
    precision_assert_same(settings, FREE);
    precision_assert_same(settings + FREE, ALL - FREE);
}

static void it_learns_as_bf16_does(void **state) {
    samples data;
    precision_outcome of_bf16, of_fp8;
    precision_setting s = {.precision = bf16, .micro = 4, .steps = 60};
    (void)state;
    precision_samples(&data);
    precision_run(&s, &data, 0, &of_bf16);
    s.precision = fp8;
    precision_run(&s, &data, 0, &of_fp8);
    assert_true(of_bf16.last.loss < 3.6); // log 61 is 4.1
    assert_true(of_fp8.last.loss != of_bf16.last.loss);
    assert_true(fabs(of_fp8.last.loss - of_bf16.last.loss) < 0.01 * of_bf16.last.loss);
    precision_outcome_free(&of_bf16);
    precision_outcome_free(&of_fp8);
    samples_free(&data);
}

// The emulation is exact with all kernels: they differ by the order of sums alone,
// which bf16 rounds.
static void kernels_differ_by_rounding(void **state) {
    samples data;
    precision_outcome best, other;
    precision_setting s = {.precision = fp8, .micro = 4, .steps = 5};
    (void)state;
    precision_samples(&data);
    precision_run(&s, &data, 0, &best);
    for (int reference = 0; reference < 2; reference++) {
        precision_run(&s, &data, reference ? PRECISION_REFERENCE : 1 + TR_ISA_GENERIC,
                      &other);
        assert_true(fabs(best.last.loss - other.last.loss) < 2e-3 * best.last.loss);
        precision_outcome_free(&other);
    }
    precision_outcome_free(&best);
    samples_free(&data);
}

// The blocks that multiply in 8 bits, "01" of two, as a plan of this file says.
static void expect_blocks(samples *data, const char *precision, const char *want) {
    char text[PRECISION_TEXT], got[8] = "";
    trial t;
    precision_setting s = {.precision = precision, .steps = 1};
    precision_text(&s, text);
    trial_open_text(&t, text, data->dataset, NULL);
    for (int u = 1; u <= PRECISION_BLOCKS; u++) {
        bool some = false;
        const tr_program *program =
            tr__unit_piece(t.plan->units[u].program, TR_VARIANT_FORWARD, 0);
        for (size_t i = 0; i < program->count; i++) {
            const char *name = program->instructions[i].desc.op->name;
            some = some || strcmp(name, "linear_fp8") == 0;
            // All of a block, or none of it.
            assert_true(strcmp(name, some ? "linear" : "linear_fp8") != 0);
        }
        strcat(got, some ? "1" : "0");
    }
    assert_string_equal(got, want);
    trial_close(&t);
}

static void blocks_by_keys(void **state) {
    samples data;
    (void)state;
    precision_samples(&data);
    expect_blocks(&data, bf16, "00");
    expect_blocks(&data, fp8, "11");
    expect_blocks(&data, "\"fp8\": {\"enabled\": true, \"first_blocks_bf16\": 1}",
                  "01");
    expect_blocks(&data, "\"fp8\": {\"enabled\": true, \"last_blocks_bf16\": 1}", "10");
    samples_free(&data);
}

// And what a run records can be read again.
static void bf16_is_implied(void **state) {
    char text[PRECISION_TEXT];
    samples data;
    trial t;
    precision_setting s = {.precision = fp8, .steps = 1};
    (void)state;
    precision_samples(&data);
    precision_text(&s, text);
    trial_open_text(&t, text, data.dataset, NULL);
    assert_int_equal(t.plan->request.compute, TR_BF16);
    assert_true(tr__config_bool(t.run->config, "bf16.enabled"));
    assert_int_equal(tr__config_origin(t.run->config, "bf16.enabled"), TR_ORIGIN_AUTO);
    trial_close(&t);
    samples_free(&data);
}

static void refused(samples *data, const char *precision, const char *why) {
    char text[PRECISION_TEXT];
    tr_error err = {0};
    tr_run *run = NULL;
    precision_setting s = {.precision = precision, .steps = 1};
    precision_text(&s, text);
    run_options options = {.text = text, .own_train = data->dataset, .resume = "never"};
    assert_int_equal(run_open(&options, &run, &err), TR_USAGE);
    if (!strstr(err.message, why)) {
        fail_msg("%s: %s", precision, err.message);
    }
    tr_run_destroy(run);
}

static void what_does_not_fit_is_said(void **state) {
    samples data;
    (void)state;
    precision_samples(&data);
    refused(&data, "\"fp8\": {\"enabled\": true}, \"fp16\": {\"enabled\": true}",
            "fp16.enabled is true: around products in fp8 everything is bf16");
    refused(&data, "\"fp8\": {\"enabled\": true}, \"bf16\": {\"enabled\": false}",
            "bf16.enabled is false");
    refused(&data, "\"fp8\": {\"enabled\": true, \"recipe\": \"delayed\"}",
            "fp8.recipe");
    refused(&data,
            "\"fp8\": {\"enabled\": true, \"first_blocks_bf16\": 1, "
            "\"last_blocks_bf16\": 1}",
            "leave none of the model's 2 blocks in fp8");
    refused(&data,
            "\"fp8\": {\"enabled\": true, \"first_blocks_bf16\": 1000000000, "
            "\"last_blocks_bf16\": 1}",
            "leave none of the model's 2 blocks in fp8");
    samples_free(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts_differ_by_rounding),
        cmocka_unit_test(placement_and_reproducible_waves_change_no_bit),
        cmocka_unit_test(it_learns_as_bf16_does),
        cmocka_unit_test(kernels_differ_by_rounding),
        cmocka_unit_test(blocks_by_keys),
        cmocka_unit_test(bf16_is_implied),
        cmocka_unit_test(what_does_not_fit_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
