// The ledger is exact: what is planned is what the arena is used for, and the process
// stays below it and a fixed allowance.
// Labels: serial
#include "program.h"
#include "samples.h"
#include "scratch.h"
#include "trial.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 2048, ALLOWANCE = 96 << 20 };

static const char gpt2[] =
    "{\"model_type\": \"gpt2\", \"n_layer\": 4, \"n_embd\": 64, \"n_head\": 4, "
    "\"n_positions\": 64, \"vocab_size\": 500}";
static const char mlp[] = "{\"model_type\": \"mlp\", \"layer_sizes\": [7, 31, 53, 5]}";

static void print_run(const char *model, int batch, int micro, int wave, int recomputed,
                      char text[TEXT_MAX]) {
    snprintf(text, TEXT_MAX,
             "{\"model\": %s, \"steps\": 2, \"train_batch_size\": %d, "
             "\"train_micro_batch_size_per_gpu\": %d, \"execution\": {\"wave\": %d}, "
             "\"activation_checkpointing\": {\"number_checkpoints\": %d}, "
             "\"out\": \"unused\"}",
             model, batch, micro, wave, recomputed);
}

// Categories add up to what the arena has.
static void check_sums(const tr_ledger *ledger) {
    for (int space = 0; space < TR_SPACES; space++) {
        int64_t sum = 0;
        for (int category = 0; category < TR_LEDGER_COUNT; category++) {
            assert_true(ledger->bytes[space][category] >= 0);
            sum += ledger->bytes[space][category];
        }
        assert_int_equal(sum, ledger->total[space]);
    }
}

static void check_used(const char *model, samples *data, int batch, int micro, int wave,
                       int recomputed) {
    char text[TEXT_MAX];
    tr_error err = {0};
    tr_evaluation evaluation = TR_EVALUATION_INIT;
    trial t;
    print_run(model, batch, micro, wave, recomputed, text);
    trial_open_text(&t, text, data->dataset, data->dataset);
    trial_steps(&t, 2, NULL);
    trial_ok(tr_engine_evaluate(t.engine, 0, &evaluation, &err), &err);
    const tr_ledger *ledger = tr_plan_ledger(t.plan);
    assert_int_equal(tr_engine_arena_peak(t.engine), ledger->total[TR_SPACE_DEVICE]);
    check_sums(ledger);
    // Parameters, their gradients and Adam's two states: four f32 each, and padding.
    int64_t least = 4 * tr_plan_parameters(t.plan);
    const int64_t *bytes = ledger->bytes[TR_SPACE_DEVICE];
    assert_true(bytes[TR_LEDGER_parameters] >= least);
    assert_int_equal(bytes[TR_LEDGER_gradients], bytes[TR_LEDGER_parameters]);
    assert_int_equal(bytes[TR_LEDGER_optimizer], 2 * bytes[TR_LEDGER_parameters]);
    trial_close(&t);
}

static void planned_is_used(void **state) {
    static const int cuts[][4] = {{8, 8, 1, 0}, {8, 1, 1, 0}, {8, 1, 8, 0},
                                  {8, 3, 2, 2}, {7, 2, 4, 3}, {5, 5, 1, 3}};
    samples tokens, features;
    (void)state;
    samples_tokens(&tokens, 9, 64, 500, 1);
    samples_features(&features, 9, 7, 5, 1);
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        const int *c = cuts[i];
        check_used(gpt2, &tokens, c[0], c[1], c[2], c[3]);
        check_used(mlp, &features, c[0], c[1], c[2], c[3]);
    }
    samples_free(&tokens);
    samples_free(&features);
}

static void an_optimizer_without_state_plans_none(void **state) {
    static const char *const optimizers[] = {
        "{\"type\": \"SGD\"}", "{\"type\": \"SGD\", \"params\": {\"momentum\": 0.5}}",
        "{\"type\": \"AdamW\"}"};
    (void)state;
    for (int states = 0; states < 3; states++) {
        char text[TEXT_MAX];
        samples data;
        trial t;
        samples_features(&data, 9, 7, 5, 1);
        snprintf(text, sizeof text,
                 "{\"model\": %s, \"steps\": 2, \"train_batch_size\": 4, "
                 "\"optimizer\": %s}",
                 mlp, optimizers[states]);
        trial_open_text(&t, text, data.dataset, NULL);
        trial_steps(&t, 2, NULL);
        const int64_t *bytes = tr_plan_ledger(t.plan)->bytes[TR_SPACE_DEVICE];
        assert_int_equal(bytes[TR_LEDGER_optimizer],
                         states * bytes[TR_LEDGER_parameters]);
        trial_close(&t);
        samples_free(&data);
    }
}

static int64_t planned(const char *model, int batch, int micro, int wave) {
    char text[TEXT_MAX];
    tr_error err = {0};
    tr_run *run = NULL;
    tr_plan *plan = NULL;
    print_run(model, batch, micro, wave, 0, text);
    run_options options = {.text = text, .plan_only = true};
    trial_ok(run_open(&options, &run, &err), &err);
    trial_ok(tr_plan_make(tr_run_plan_request(run), &plan, &err), &err);
    int64_t bytes = tr_plan_ledger(plan)->total[TR_SPACE_DEVICE];
    tr_plan_destroy(plan);
    tr_run_destroy(run);
    return bytes;
}

static void accumulation_costs_no_memory(void **state) {
    int64_t one = planned(gpt2, 2, 2, 1);
    (void)state;
    for (int g = 2; g <= 64; g *= 2) {
        int64_t many = planned(gpt2, 2 * g, 2, 1);
        assert_true(llabs(many - one) * 100 < one);
    }
    // While a batch that is not cut, or a wave of more, does cost.
    assert_true(planned(gpt2, 128, 128, 1) > 4 * one);
    assert_true(planned(gpt2, 128, 2, 64) > 4 * one);
}

// ---- the process

static int64_t planned_bytes(const char *out) {
    json_t *metrics = metrics_read(out);
    const json_t *bytes =
        json_object_get(json_array_get(metrics, 0), "planned_peak_bytes");
    int64_t device = json_integer_value(json_object_get(bytes, "device"));
    int64_t host = json_integer_value(json_object_get(bytes, "host"));
    assert_true(device > 0 && host >= 0);
    json_decref(metrics);
    return device + host;
}

static void check_process(void *const *state, const char *run, int64_t least) {
    struct rusage usage;
    const char *out = scratch_path(state, "out");
    const char *log = scratch_path(state, "log");
    const char *file = scratch_text(state, "run.json", run);
    const char *arguments[] = {"train", file, "--out", out, "--resume", "never", NULL};
    int status = program_wait(program_start(arguments, log), &usage);
    if (status != 0) {
        char *text = file_text(log);
        print_error("%s\n", text);
        free(text);
    }
    assert_int_equal(status, 0);
    int64_t plan = planned_bytes(out), peak = (int64_t)usage.ru_maxrss * 1024;
    if (peak >= plan + ALLOWANCE || peak < plan / 2 || plan < least) {
        fail_msg("planned %" PRId64 " bytes (at least %" PRId64 "), resident %" PRId64,
                 plan, least, peak);
    }
}

// Its shadow memory is resident, too.
static void skip_under_sanitizer(void) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip();
#endif
}

static void the_process_stays_below(void **state) {
    char text[TEXT_MAX];
    skip_under_sanitizer();
    const char *words = scratch_words(state, "words.txt", 100000, 1);
    snprintf(text, sizeof text,
             "{\"model\": {\"model_type\": \"gpt2\", \"n_layer\": 4, \"n_embd\": 256, "
             "\"n_head\": 4, \"n_positions\": 128, \"vocab_size\": 8000}, \"data\": "
             "{\"train\": \"%s\", \"validation\": 0.1}, \"train_batch_size\": 3, "
             "\"train_micro_batch_size_per_gpu\": 1, \"steps\": 2, "
             "\"evaluation\": {\"every\": 1, \"samples\": 2}, \"checkpoint\": "
             "{\"every\": 1}}",
             words);
    check_process(state, text, 80 << 20);
    check_process(state,
                  "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": "
                  "[784, 2048, 1500, 10]}, \"data\": {\"format\": \"random\", "
                  "\"samples\": 500, \"features\": 784, \"classes\": 10}, "
                  "\"train_batch_size\": 100, \"train_micro_batch_size_per_gpu\": 7, "
                  "\"execution\": {\"wave\": 3}, \"steps\": 4}",
                  70 << 20);
    check_process(state,
                  "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": "
                  "[1024, 4096, 4096, 100]}, \"data\": {\"format\": \"random\", "
                  "\"samples\": 500, \"features\": 1024, \"classes\": 100}, "
                  "\"train_batch_size\": 64, \"optimizer\": {\"type\": \"SGD\"}, "
                  "\"steps\": 3}",
                  150 << 20);
}

// Features that a data set holds in memory are in the ledger's host column.
static void data_in_memory_counts(void **state) {
    enum { ROWS = 40000, FEATURES = 100 };
    char text[TEXT_MAX];
    skip_under_sanitizer();
    const char *path = scratch_path(state, "data.csv");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int r = 0; r < ROWS; r++) {
        for (int f = 0; f < FEATURES; f++) {
            fprintf(file, "%d,", (r * 31 + f * 17) % 10);
        }
        fprintf(file, "%d\n", r % 3);
    }
    assert_int_equal(fclose(file), 0);
    snprintf(text, sizeof text,
             "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [%d, 8, 3]}, "
             "\"data\": {\"format\": \"csv\", \"train\": \"%s\"}, "
             "\"train_batch_size\": 10, \"steps\": 2}",
             FEATURES, path);
    check_process(state, text, (int64_t)4 * ROWS * FEATURES);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(the_process_stays_below),
        TEST(data_in_memory_counts),
        cmocka_unit_test(planned_is_used),
        cmocka_unit_test(an_optimizer_without_state_plans_none),
        cmocka_unit_test(accumulation_costs_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
