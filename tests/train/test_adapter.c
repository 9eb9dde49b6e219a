// Adapters against PEFT's (tests/data/adapters): losses in cuts and placements, files,
// resuming, merging; and what is wrong is named.
#include "adapter_files.h"
#include "scratch.h"
#include "snapshot.h"

#include <tranche/checkpoint.h>
#include <tranche/sample.h>

#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_MAX = 4 * PATH_MAX, STEPS = 20 };

static const char *const models[] = {"llama", "gpt2", "llama-dora", "gpt2-dora"};
enum { MODELS = sizeof models / sizeof *models };

// A run of one of the models. base: its folder. adapter: the inside of the key. more:
// further keys, each behind a comma.
static void write_run_on(char *text, const char *model, const char *base,
                         const char *adapter, const char *out, const char *more) {
    snprintf(text, TEXT_MAX,
             "{\"model\": \"%s\", \"adapter\": {%s}, \"data\": {\"format\": "
             "\"bytes\", \"train\": \"%s/%s/text.bin\", \"max_length\": 32, \"order\": "
             "\"sequential\"}, \"steps\": %d, \"train_batch_size\": 8, \"optimizer\": "
             "{\"type\": \"AdamW\", \"params\": {\"lr\": 1e-2, \"eps\": 1e-6, "
             "\"weight_decay\": 0.01}}, \"out\": \"%s\"%s}",
             base, adapter, ADAPTERS, model, STEPS, out, more);
}

static void write_run(char *text, const char *model, const char *adapter,
                      const char *out, const char *more) {
    char base[PATH_MAX];
    snprintf(base, sizeof base, "%s/%s/base", ADAPTERS, model);
    write_run_on(text, model, base, adapter, out, more);
}

static void path_key(char *key, const char *model) {
    snprintf(key, PATH_MAX, "\"path\": \"%s/%s/adapter\"", ADAPTERS, model);
}

static void open_run(trial *t, const char *model, const char *more) {
    char text[TEXT_MAX], key[PATH_MAX];
    path_key(key, model);
    write_run(text, model, key, "unused", more);
    trial_open_text(t, text, NULL, NULL);
}

static double loss_of(const json_t *golden, int step) {
    return json_number_value(json_array_get(json_object_get(golden, "losses"), step));
}

static void check_losses(const char *model, const char *more, double tolerance) {
    json_t *golden = adapter_golden(model);
    trial t;
    open_run(&t, model, more);
    for (int s = 0; s < STEPS; s++) {
        tr_step_result result = TR_STEP_RESULT_INIT;
        trial_steps(&t, 1, &result);
        double wanted = loss_of(golden, s);
        if (!(fabs(result.loss - wanted) < tolerance * wanted)) {
            fail_msg("%s%s: loss %d is %g, not %g", model, more, s, result.loss,
                     wanted);
        }
    }
    assert_int_equal(tr_engine_arena_peak(t.engine),
                     tr_plan_ledger(t.plan)->total[TR_SPACE_DEVICE]);
    trial_close(&t);
    json_decref(golden);
}

static void losses_are_pefts_in_every_cut(void **state) {
    static const char *const cuts[] = {
        ", \"train_micro_batch_size_per_gpu\": 8",
        ", \"train_micro_batch_size_per_gpu\": 3",
        ", \"train_micro_batch_size_per_gpu\": 1, \"execution\": {\"wave\": 4}",
        ", \"train_micro_batch_size_per_gpu\": 2, \"execution\": "
        "{\"recompute\": \"unit\"}",
        ", \"train_micro_batch_size_per_gpu\": 2, \"zero_optimization\": {\"stage\": "
        "3, "
        "\"offload_optimizer\": {\"device\": \"cpu\"}, \"offload_param\": {\"device\": "
        "\"cpu\"}}",
    };
    (void)state;
    for (int m = 0; m < MODELS; m++) {
        for (size_t c = 0; c < sizeof cuts / sizeof *cuts; c++) {
            check_losses(models[m], cuts[c], 1e-5);
        }
    }
}

static void sixteen_bits_keep_the_base_in_them_alone(void **state) {
    (void)state;
    for (int m = 0; m < MODELS; m++) {
        trial t;
        check_losses(models[m], ", \"bf16\": {\"enabled\": true}", 2e-2);
        open_run(&t, models[m], ", \"bf16\": {\"enabled\": true}");
        const tr_ledger *ledger = tr_plan_ledger(t.plan);
        int64_t trained = tr_plan_trained(t.plan);
        int64_t frozen = tr_plan_parameters(t.plan) - trained;
        // Of what is trained a master and a copy, of the base a copy.
        int64_t bytes = ledger->bytes[TR_SPACE_DEVICE][TR_LEDGER_parameters];
        assert_true(bytes >= 2 * frozen + 6 * trained);
        assert_true(bytes < 2 * frozen + 6 * trained + 4096);
        trial_close(&t);
    }
}

static void what_is_trained_takes_12_bytes(void **state) {
    (void)state;
    for (int m = 0; m < MODELS; m++) {
        trial t;
        open_run(&t, models[m], "");
        const tr_ledger *ledger = tr_plan_ledger(t.plan);
        int64_t bytes = ledger->bytes[TR_SPACE_DEVICE][TR_LEDGER_gradients] +
                        ledger->bytes[TR_SPACE_DEVICE][TR_LEDGER_optimizer];
        int64_t trained = tr_plan_trained(t.plan);
        assert_true(bytes >= 12 * trained && bytes < 12 * trained + 4096);
        trial_close(&t);
    }
}

// ---- a new one

static double first_loss(const char *text) {
    trial t;
    tr_step_result result = TR_STEP_RESULT_INIT;
    trial_open_text(&t, text, NULL, NULL);
    trial_steps(&t, 1, &result);
    trial_close(&t);
    return result.loss;
}

// B is zeros: the first step's loss is the base's, to the bit.
static void a_new_adapter_changes_nothing(void **state) {
    static const char key[] =
        "\"type\": \"lora\", \"r\": 2, \"target_modules\": \"all-linear\"";
    char text[TEXT_MAX], plain[TEXT_MAX];
    (void)state;
    for (int m = 0; m < MODELS; m++) {
        write_run(text, models[m], key, "unused", "");
        snprintf(plain, sizeof plain, "%s", text);
        char *begin = strstr(plain, "\"adapter\""), *end = strstr(plain, "\"data\"");
        memset(begin, ' ', (size_t)(end - begin));
        assert_true(first_loss(text) == first_loss(plain));
    }
}

static bool has_magnitudes(const char *model) {
    return strstr(model, "-dora") != NULL;
}

// Magnitudes begin as the lengths by which products are divided.
static void new_magnitudes_change_nothing(void **state) {
    static const char key[] = "\"type\": \"lora\", \"r\": 2, \"use_dora\": true, "
                              "\"target_modules\": \"all-linear\"";
    static const char *const kept[] = {"", ", \"quantization\": {\"base\": \"nf4\"}",
                                       ", \"quantization\": {\"base\": \"q8_0\"}"};
    char text[TEXT_MAX], plain[TEXT_MAX];
    (void)state;
    for (int m = 0; m < MODELS; m++) {
        for (size_t k = 0; k < sizeof kept / sizeof *kept; k++) {
            write_run(text, models[m], key, "unused", kept[k]);
            write_run(plain, models[m], "\"r\": 2", "unused", kept[k]);
            double loss = first_loss(text), wanted = first_loss(plain);
            assert_true(fabs(loss - wanted) < 1e-6 * wanted);
        }
    }
}

// Lengths are found once for all micro-batches between two updates: they are kept.
static void lengths_are_found_once_an_update(void **state) {
    (void)state;
    for (int m = 0; m < MODELS; m++) {
        trial t;
        open_run(&t, models[m], ", \"train_micro_batch_size_per_gpu\": 2");
        int64_t kept = tr_plan_ledger(t.plan)->bytes[TR_SPACE_DEVICE][TR_LEDGER_packed];
        assert_int_equal(kept > 0, has_magnitudes(models[m]));
        trial_close(&t);
    }
}

// ---- files

// Names are PEFT's, and what is trained is all there is.
static void check_saved(const char *out) {
    char folder[PATH_MAX], path[2 * PATH_MAX];
    tr_error err = {0};
    tr_tensor_set *set = NULL;
    trial_ok(tr_checkpoint_locate(out, folder, sizeof folder, &err), &err);
    snprintf(path, sizeof path, "%s/adapter_model.safetensors", folder);
    trial_ok(tr__tensor_set_open(path, &set, &err), &err);
    for (size_t i = 0; i < tr__tensor_set_count(set); i++) {
        const char *name = tr__tensor_set_at(set, i)->name;
        assert_true(strncmp(name, "base_model.model.", 17) == 0);
        assert_true(strstr(name, ".lora_A.weight") || strstr(name, ".lora_B.weight") ||
                    strstr(name, ".lora_magnitude_vector") ||
                    strstr(name, "lm_head.weight"));
    }
    assert_true(tr__tensor_set_count(set) > 0);
    tr__tensor_set_close(set);
}

static void train(const char *text, int64_t steps, snapshot *after) {
    trial t;
    tr_error err = {0};
    const run_options options = {.text = text};
    trial_open(&t, &options);
    trial_steps(&t, steps, NULL);
    trial_ok(tr_engine_save(t.engine, &err), &err);
    if (after) {
        snapshot_take(after, &t);
    }
    trial_close(&t);
}

static void resumed_is_as_trained_at_once(void **state) {
    static const char key[] = "\"type\": \"lora\", \"r\": 3, \"lora_dropout\": 0.25, "
                              "\"use_dora\": true, "
                              "\"target_modules\": [\"q_proj\", \"v_proj\"]";
    char first[TEXT_MAX], other[TEXT_MAX], out[PATH_MAX], second[PATH_MAX];
    snapshot at_once, resumed;
    snprintf(out, sizeof out, "%s", scratch_path(state, "out"));
    snprintf(second, sizeof second, "%s", scratch_path(state, "second"));
    write_run(first, "llama", key, out, "");
    write_run(other, "llama", key, second, "");
    train(first, 5, NULL);
    check_saved(out);
    train(first, 4, &resumed);
    train(other, 9, &at_once);
    snapshot_assert_same(&at_once, &resumed);
    snapshot_free(&at_once);
    snapshot_free(&resumed);
}

static void another_base_is_refused(void **state) {
    static const char key[] = "\"type\": \"lora\"";
    char text[TEXT_MAX], out[PATH_MAX], base[PATH_MAX];
    tr_error err = {0};
    trial t;
    snprintf(out, sizeof out, "%s", scratch_path(state, "out"));
    snprintf(base, sizeof base, "%s", scratch_path(state, "base"));
    write_run(text, "llama", key, out, "");
    train(text, 1, NULL);
    adapter_copy_base("llama", base);
    write_run_on(text, "llama", base, key, out, "");
    assert_int_equal(adapter_try(&t, text, NULL, &err), TR_IO);
    if (!strstr(err.message, "was trained on another base than")) {
        fail_msg("%s", err.message);
    }
    trial_close(&t);
}

// ---- asking

// The samples of the first step, whose loss the golden has, as a file.
static void first_samples(const char *model, const char *to) {
    enum { BYTES = 8 * 32 + 1 };
    char path[PATH_MAX], bytes[BYTES];
    snprintf(path, sizeof path, "%s/%s/text.bin", ADAPTERS, model);
    FILE *in = fopen(path, "rb"), *out = fopen(to, "wb");
    assert_non_null(in);
    assert_non_null(out);
    assert_int_equal(fread(bytes, 1, BYTES, in), BYTES);
    assert_int_equal(fwrite(bytes, 1, BYTES, out), BYTES);
    fclose(in);
    assert_int_equal(fclose(out), 0);
}

// PEFT's folder names a base that is not there.
static void the_base_may_have_moved(void **state) {
    char base[PATH_MAX], adapter[PATH_MAX], text[PATH_MAX];
    const char *const data[] = {text};
    const char *const set[] = {"data.max_length=32", "data.format=bytes"};
    for (int m = 0; m < MODELS; m++) {
        tr_evaluator_options options = TR_EVALUATOR_OPTIONS_INIT;
        tr_evaluated result = TR_EVALUATED_INIT;
        tr_error err = {0};
        json_t *golden = adapter_golden(models[m]);
        snprintf(base, sizeof base, "%s/%s/base", ADAPTERS, models[m]);
        snprintf(adapter, sizeof adapter, "%s/%s/adapter", ADAPTERS, models[m]);
        snprintf(text, sizeof text, "%s", scratch_path(state, models[m]));
        first_samples(models[m], text);
        options.path = adapter;
        options.data = data;
        options.data_count = 1;
        options.set = set;
        options.set_count = 2;
        assert_int_equal(tr_evaluate(&options, &result, &err), TR_IO);
        if (!strstr(err.message, "the adapter's base, \"base\", is no folder")) {
            fail_msg("%s", err.message);
        }
        options.base = base;
        trial_ok(tr_evaluate(&options, &result, &err), &err);
        assert_true(fabs(result.loss - loss_of(golden, 0)) < 1e-5);
        options.path = base;
        assert_int_equal(tr_evaluate(&options, &result, &err), TR_USAGE);
        json_decref(golden);
    }
}

// ---- merging

static void merged_is_pefts(void **state) {
    for (int m = 0; m < MODELS; m++) {
        char from[PATH_MAX], base[PATH_MAX], out[PATH_MAX];
        json_t *golden = adapter_golden(models[m]), *sums;
        const char *name;
        tr_error err = {0};
        tr_tensor_set *set = NULL;
        snprintf(from, sizeof from, "%s/%s/adapter", ADAPTERS, models[m]);
        snprintf(base, sizeof base, "%s/%s/base", ADAPTERS, models[m]);
        snprintf(out, sizeof out, "%s", scratch_path(state, models[m]));
        trial_ok(tr_adapter_merge(from, base, out, &err), &err);
        trial_ok(tr__tensor_set_open(out, &set, &err), &err);
        json_object_foreach(json_object_get(golden, "merged"), name, sums) {
            double sum = 0, squares = 0;
            adapter_sums(set, name, &sum, &squares);
            double wanted = json_number_value(json_array_get(sums, 0));
            double more = json_number_value(json_array_get(sums, 1));
            if (fabs(squares - more) > 1e-6 * more ||
                fabs(sum - wanted) > 1e-5 * (1 + sqrt(more))) {
                fail_msg("%s: %s sums to %g and %g, not %g and %g", models[m], name,
                         sum, squares, wanted, more);
            }
        }
        assert_int_equal(tr_adapter_merge(from, base, out, &err), TR_IO);
        assert_non_null(strstr(err.message, "is not empty"));
        assert_int_equal(tr_adapter_merge(base, NULL, out, NULL), TR_IO);
        tr__tensor_set_close(set);
        json_decref(golden);
    }
}

// ---- what is wrong

static void mistakes_are_named(void **state) {
    static const struct {
        const char *key, *more, *words;
    } bad[] = {
        {"\"type\": \"ia3\"", "", "adapter.type"},
        {"\"r\": 0", "", "adapter.r"},
        {"\"target_modules\": [\"q_proj\", \"nothing\"]", "",
         "adapter.target_modules: \"nothing\" names no linear layer"},
        {"\"target_modules\": \"x.*\"", "", "names no linear layer"},
        {"\"target_modules\": \"(\"", "", "is no regular expression"},
        {"\"target_modules\": \"(a{9}){9}\"", "", "has a counted repetition"},
        {"\"target_modules\": \"(a*)\\\\1\"", "", "has a counted repetition"},
        {"\"target_modules\": []", "", "target_modules is a list of layers' names"},
        {"\"modules_to_save\": [\"nothing\"]", "", "adapter.modules_to_save"},
        {"\"lora_dropout\": 1", "", "adapter.lora_dropout"},
        {"\"type\": \"lora\"", ", \"freeze\": [\"*\"]",
         "with an adapter all of the base is frozen"},
        {"\"path\": \"" ADAPTERS "/llama/base\"", "", "holds no adapter"},
        {"\"path\": \"" ADAPTERS "/llama/adapter\", \"r\": 4", "",
         "adapter.r: the adapter of adapter.path says it"},
        {"\"path\": \"" ADAPTERS "/gpt2/adapter\"", "", "names no linear layer"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[TEXT_MAX];
        tr_error err = {0};
        trial t;
        write_run(text, "llama", bad[i].key, "unused", bad[i].more);
        tr_status status = adapter_try(&t, text, "never", &err);
        if (status != TR_USAGE || !strstr(err.message, bad[i].words)) {
            fail_msg("%s: status %d, \"%s\"", bad[i].key, (int)status, err.message);
        }
        trial_close(&t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_are_pefts_in_every_cut),
        cmocka_unit_test(sixteen_bits_keep_the_base_in_them_alone),
        cmocka_unit_test(what_is_trained_takes_12_bytes),
        cmocka_unit_test(a_new_adapter_changes_nothing),
        cmocka_unit_test(new_magnitudes_change_nothing),
        cmocka_unit_test(lengths_are_found_once_an_update),
        cmocka_unit_test_setup_teardown(resumed_is_as_trained_at_once, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(another_base_is_refused, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(the_base_may_have_moved, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(merged_is_pefts, scratch_make, scratch_remove),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
