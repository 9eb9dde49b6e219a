// Bases in few bits against bitsandbytes, gguf and PEFT (tests/data/quantized): values,
// losses in cuts and placements, bytes; and what is wrong is named.
#include "adapter_files.h"
#include "base/quantized.h"
#include "files/safetensors/tensor_set.h"
#include "models/folder.h"
#include "scratch.h"
#include "trial.h"

#include <tranche/checkpoint.h>
#include <tranche/sample.h>

#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUANTIZED TR_TEST_DATA "/quantized"

enum { TEXT_MAX = 4 * PATH_MAX, STEPS = 20, WAYS = 3, SHOWN = 2 };

static const struct {
    const char *name, *keys;
    tr_quantization kind;
    double bytes; // of a weight, of tensors of whole blocks
} ways[WAYS] = {
    {"nf4", "\"base\": \"nf4\"", TR_QUANTIZED_NF4, 0.5625},
    {"nf4_double", "\"base\": \"nf4\", \"double\": true", TR_QUANTIZED_NF4_DOUBLE,
     0.516},
    {"q8_0", "\"base\": \"q8_0\"", TR_QUANTIZED_Q8_0, 1.0625},
};

static const struct {
    const char *model;
    bool transposed;
    const char *shown[SHOWN];
} models[] = {
    {"llama",
     false,
     {"model.layers.0.self_attn.q_proj.weight", "model.layers.1.mlp.down_proj.weight"}},
    {"gpt2",
     true,
     {"transformer.h.0.attn.c_attn.weight", "transformer.h.1.mlp.c_proj.weight"}},
    {"llama-dora", false, {0}},
    {"gpt2-dora", true, {0}},
};
enum { MODELS = sizeof models / sizeof *models, VALUED = 2 };

// ---- values

static float *exchanged(const float *x, int64_t rows, int64_t columns) {
    float *out = calloc((size_t)(rows * columns), sizeof *out);
    assert_non_null(out);
    for (int64_t i = 0; i < rows * columns; i++) {
        out[i % columns * rows + i / columns] = x[i];
    }
    return out;
}

// What the tensor becomes: count numbers.
static float *through(tr_quantization kind, const float *x, int64_t count) {
    tr_error err = {0};
    float *out = calloc((size_t)count, sizeof *out);
    assert_non_null(out);
    memcpy(out, x, (size_t)count * sizeof *out);
    assert_int_equal(tr__quantize_through(kind, out, count, &err), TR_OK);
    return out;
}

// Means are added up in another order there, so with double quantization they may
// differ in the last place.
static bool is_theirs(tr_quantization kind, float got, float wanted) {
    float may = kind == TR_QUANTIZED_NF4_DOUBLE ? 3e-7F * fabsf(wanted) : 0;
    return fabsf(got - wanted) <= may;
}

static void check_values(int m, int w, const char *name, const float *got,
                         const float *wanted, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        if (!is_theirs(ways[w].kind, got[i], wanted[i])) {
            fail_msg("%s, %s, %s: element %lld is %.9g, not %.9g", models[m].model,
                     name, ways[w].name, (long long)i, got[i], wanted[i]);
        }
    }
}

static void values_are_theirs(void **state) {
    (void)state;
    for (int m = 0; m < VALUED; m++) {
        char folder[PATH_MAX], path[PATH_MAX + 64];
        tr_tensor_set *set = NULL;
        tr_error err = {0};
        snprintf(folder, sizeof folder, "%s/%s/base", ADAPTERS, models[m].model);
        assert_int_equal(tr__tensor_set_open(folder, &set, &err), TR_OK);
        for (int w = 0; w < WAYS; w++) {
            snprintf(path, sizeof path, QUANTIZED "/%s/%s.bin", models[m].model,
                     ways[w].name);
            FILE *golden = fopen(path, "rb");
            assert_non_null(golden);
            for (int k = 0; k < SHOWN; k++) {
                const tr_stored_tensor *tensor =
                    tr__tensor_set_find_prefixed(set, models[m].shown[k]);
                assert_non_null(tensor);
                size_t count = (size_t)tensor->count;
                float *x = calloc(count, sizeof *x), *wanted = calloc(count, sizeof *x);
                assert_int_equal(
                    tr__tensor_read_f32(set, tensor, 0, tensor->count, x, &err), TR_OK);
                assert_int_equal(fread(wanted, sizeof *wanted, count, golden), count);
                float *turned = models[m].transposed
                                    ? exchanged(x, tensor->dim[0], tensor->dim[1])
                                    : NULL;
                float *got = through(ways[w].kind, turned ? turned : x, tensor->count);
                check_values(m, w, models[m].shown[k], got, wanted, tensor->count);
                free(x);
                free(wanted);
                free(turned);
                free(got);
            }
            fclose(golden);
        }
        tr__tensor_set_close(set);
    }
}

// ---- runs

static void write_run_to(char *text, int m, const char *quantization, const char *out,
                         const char *more) {
    snprintf(text, TEXT_MAX,
             "{\"model\": \"%s/%s/base\", \"adapter\": {\"path\": \"%s/%s/adapter\"}, "
             "\"quantization\": {%s}, \"data\": {\"format\": \"bytes\", \"train\": "
             "\"%s/%s/text.bin\", \"max_length\": 32, \"order\": \"sequential\"}, "
             "\"steps\": %d, \"train_batch_size\": 8, \"optimizer\": {\"type\": "
             "\"AdamW\", \"params\": {\"lr\": 1e-2, \"eps\": 1e-6, \"weight_decay\": "
             "0.01}}, \"out\": \"%s\"%s}",
             ADAPTERS, models[m].model, ADAPTERS, models[m].model, quantization,
             ADAPTERS, models[m].model, STEPS, out, more);
}

static void write_run(char *text, int m, const char *quantization, const char *more) {
    write_run_to(text, m, quantization, "unused", more);
}

static void check_losses(int m, int w, const char *more, double tolerance) {
    char text[TEXT_MAX], path[PATH_MAX];
    trial t;
    snprintf(path, sizeof path, QUANTIZED "/%s/golden.json", models[m].model);
    json_t *golden = json_load_file(path, 0, NULL);
    assert_non_null(golden);
    const json_t *losses = json_object_get(golden, ways[w].name);
    write_run(text, m, ways[w].keys, more);
    trial_open_text(&t, text, NULL, NULL);
    for (int s = 0; s < STEPS; s++) {
        tr_step_result result = TR_STEP_RESULT_INIT;
        trial_steps(&t, 1, &result);
        double wanted = json_number_value(json_array_get(losses, (size_t)s));
        if (!(fabs(result.loss - wanted) < tolerance * wanted)) {
            fail_msg("%s, %s%s: loss %d is %g, not %g", models[m].model, ways[w].name,
                     more, s, result.loss, wanted);
        }
    }
    assert_int_equal(tr_engine_arena_peak(t.engine),
                     tr_plan_ledger(t.plan)->total[TR_SPACE_DEVICE]);
    trial_close(&t);
    json_decref(golden);
}

static void losses_are_pefts_in_every_cut(void **state) {
    static const char *const cuts[] = {
        ", \"train_micro_batch_size_per_gpu\": 3",
        ", \"train_micro_batch_size_per_gpu\": 1, \"execution\": {\"wave\": 4}",
        ", \"train_micro_batch_size_per_gpu\": 2, \"execution\": "
        "{\"recompute\": \"unit\"}",
        ", \"train_micro_batch_size_per_gpu\": 2, \"zero_optimization\": {\"stage\": "
        "3, \"offload_optimizer\": {\"device\": \"cpu\"}, \"offload_param\": "
        "{\"device\": \"cpu\"}}",
    };
    (void)state;
    for (int m = 0; m < MODELS; m++) {
        for (int w = 0; w < WAYS; w++) {
            for (size_t c = 0; c < sizeof cuts / sizeof *cuts; c++) {
                check_losses(m, w, cuts[c], 1e-5);
            }
            check_losses(m, w, ", \"bf16\": {\"enabled\": true}", 2e-2);
            check_losses(m, w,
                         ", \"bf16\": {\"enabled\": true}, \"zero_optimization\": "
                         "{\"stage\": 3, \"offload_param\": {\"device\": \"cpu\"}}",
                         2e-2);
        }
    }
}

// ---- a base that is saved in 4 bits

// The first loss, whatever the base is kept as; and of one that is read in f32.
static void check_saved(const char *quantization, double tolerance) {
    static const char *const set[] = {"model=" QUANTIZED "/saved"};
    char text[TEXT_MAX];
    trial t;
    tr_step_result result = TR_STEP_RESULT_INIT;
    json_t *golden = json_load_file(QUANTIZED "/llama/golden.json", 0, NULL);
    assert_non_null(golden);
    double wanted =
        json_number_value(json_array_get(json_object_get(golden, "nf4_double"), 0));
    run_options options = {.text = text, .set = set, .set_count = 1};
    write_run(text, 0, quantization, "");
    trial_open(&t, &options);
    trial_steps(&t, 1, &result);
    if (!(fabs(result.loss - wanted) < tolerance * wanted)) {
        fail_msg("%s: loss %.9g, not %.9g", quantization, result.loss, wanted);
    }
    trial_close(&t);
    json_decref(golden);
}

static void saved_bits_are_read(void **state) {
    (void)state;
    check_saved("\"base\": \"nf4\", \"double\": true", 1e-6);
    check_saved("", 1e-6);
    check_saved("\"base\": \"nf4\"", 1e-5);
}

// Weights [in, out] lie there with their sides exchanged, which nothing says.
static void gpt2_in_4_bits_is_refused(void **state) {
    char folder[PATH_MAX], config[PATH_MAX + 16];
    tr_error err = {0};
    tr_model *model = NULL;
    snprintf(folder, sizeof folder, "%s", scratch_path(state, "base"));
    adapter_copy_base("gpt2", folder);
    snprintf(config, sizeof config, "%s/config.json", folder);
    json_t *keys = json_load_file(config, 0, NULL);
    json_t *bits =
        json_pack("{s:s, s:b}", "quant_method", "bitsandbytes", "load_in_4bit", 1);
    assert_int_equal(json_object_set_new(keys, "quantization_config", bits), 0);
    assert_int_equal(json_dump_file(keys, config, 0), 0);
    json_decref(keys);
    assert_int_equal(tr__model_from_folder(folder, NULL, &model, &err), TR_USAGE);
    if (!strstr(err.message, "weights of gpt2 in 4 bits are not read yet")) {
        fail_msg("%s", err.message);
    }
}

// ---- bytes

// A Llama of whole blocks: planned, not run.
static int64_t planned_bytes(const char *more) {
    char text[TEXT_MAX];
    tr_error err = {0};
    tr_run *run = NULL;
    tr_plan *plan = NULL;
    (void)more;
    write_run(text, 0, more, ", \"bf16\": {\"enabled\": true}");
    assert_int_equal(tr_run_create(&run, &err), TR_OK);
    assert_int_equal(tr_run_load_text(run, text, &err), TR_OK);
    if (tr_run_resolve(run, &err) != TR_OK ||
        tr_run_make_plan(run, &plan, &err) != TR_OK) {
        fail_msg("%s", err.message);
    }
    int64_t bytes = tr_plan_ledger(plan)->bytes[TR_SPACE_DEVICE][TR_LEDGER_parameters];
    tr_plan_destroy(plan);
    tr_run_destroy(run);
    return bytes;
}

static void weights_take_their_bits(void **state) {
    // Of the two layers: q, k, v, o, gate, up, down, whose widths are 24, 12 and 40.
    enum { WEIGHTS = 2 * (24 * 24 * 2 + 12 * 24 * 2 + 24 * 40 * 3) };
    (void)state;
    int64_t plain = planned_bytes("");
    for (int w = 0; w < WAYS; w++) {
        int64_t less = plain - planned_bytes(ways[w].keys);
        double bytes = 2 - (double)less / WEIGHTS;
        // Rows of 64 bytes, and small tensors' own numbers, are above that.
        assert_true(bytes > ways[w].bytes && bytes < ways[w].bytes + 0.04);
    }
}

// ---- what was trained on is kept

static double loss_of(const char *path, int m) {
    char text[PATH_MAX];
    const char *const data[] = {text};
    const char *const set[] = {"data.max_length=32", "data.format=bytes"};
    tr_evaluator_options options = TR_EVALUATOR_OPTIONS_INIT;
    tr_evaluated result = TR_EVALUATED_INIT;
    tr_error err = {0};
    snprintf(text, sizeof text, "%s/%s/text.bin", ADAPTERS, models[m].model);
    options.path = path;
    options.data = data;
    options.data_count = 1;
    options.set = set;
    options.set_count = 2;
    if (tr_evaluate(&options, &result, &err) != TR_OK) {
        fail_msg("%s", err.message);
    }
    return result.loss;
}

static void merged_is_what_was_trained(void **state) {
    for (int m = 0; m < MODELS; m++) {
        char text[TEXT_MAX], out[PATH_MAX], merged[2 * PATH_MAX], base[PATH_MAX];
        tr_error err = {0};
        trial t;
        run_options options = {.text = text};
        snprintf(out, sizeof out, "%s", scratch_path(state, models[m].model));
        snprintf(merged, sizeof merged, "%s/merged", out);
        write_run_to(text, m, ways[0].keys, out, "");
        trial_open(&t, &options);
        trial_steps(&t, 2, NULL);
        trial_ok(tr_engine_save(t.engine, &err), &err);
        trial_close(&t);
        trial_ok(tr_adapter_merge(out, NULL, merged, &err), &err);
        double loss = loss_of(out, m);
        assert_true(fabs(loss_of(merged, m) - loss) < 1e-7 * loss);
        snprintf(merged, sizeof merged, "%s/whole", out);
        snprintf(base, sizeof base, "%s/%s/base", ADAPTERS, models[m].model);
        trial_ok(tr_adapter_merge(out, base, merged, &err), &err);
        assert_true(fabs(loss_of(merged, m) - loss) > 1e-6 * loss);
        // Another kind of base is refused.
        write_run_to(text, m, ways[2].keys, out, "");
        assert_int_equal(adapter_try(&t, text, NULL, &err), TR_IO);
        assert_non_null(strstr(err.message, "was trained on a base kept as nf4"));
        trial_close(&t);
    }
}

// Its values are added to as they are: to quantize them again would change them.
static void a_saved_base_is_merged(void **state) {
    static const char *const set[] = {"model=" QUANTIZED "/saved"};
    char text[TEXT_MAX], out[PATH_MAX], merged[2 * PATH_MAX];
    tr_error err = {0};
    trial t;
    run_options options = {.text = text, .set = set, .set_count = 1};
    snprintf(out, sizeof out, "%s", scratch_path(state, "saved"));
    snprintf(merged, sizeof merged, "%s/merged", out);
    write_run_to(text, 0, ways[1].keys, out, "");
    trial_open(&t, &options);
    trial_steps(&t, 1, NULL);
    trial_ok(tr_engine_save(t.engine, &err), &err);
    trial_close(&t);
    trial_ok(tr_adapter_merge(out, NULL, merged, &err), &err);
    double loss = loss_of(out, 0);
    assert_true(fabs(loss_of(merged, 0) - loss) < 1e-7 * loss);
}

// ---- errors

static void refuse(const char *quantization, const char *more, const char *words) {
    char text[TEXT_MAX];
    tr_error err = {0};
    tr_run *run = NULL;
    tr_plan *plan = NULL;
    write_run(text, 0, quantization, more);
    assert_int_equal(tr_run_create(&run, &err), TR_OK);
    assert_int_equal(tr_run_load_text(run, text, &err), TR_OK);
    tr_status status = tr_run_resolve(run, &err);
    status = status == TR_OK ? tr_run_make_plan(run, &plan, &err) : status;
    assert_int_equal(status, TR_USAGE);
    if (!strstr(err.message, words)) {
        fail_msg("\"%s\" is not in: %s", words, err.message);
    }
    tr_run_destroy(run);
}

static void what_is_wrong_is_named(void **state) {
    (void)state;
    refuse("\"base\": \"nf5\"", "", "quantization.base");
    refuse("\"base\": \"q8_0\", \"double\": true", "", "quantization.double");
    refuse("\"base\": \"nf4\"",
           ", \"fp8\": {\"enabled\": true}, \"bf16\": {\"enabled\": true}",
           "quantization.base and fp8.enabled");
    trial t;
    char text[TEXT_MAX];
    float value;
    tr_error err = {0};
    write_run(text, 0, ways[0].keys, "");
    trial_open_text(&t, text, NULL, NULL);
    assert_int_equal(
        tr_engine_read(t.engine, models[0].shown[0], "values", 0, 1, &value, &err),
        TR_USAGE);
    assert_non_null(strstr(err.message, "few bits"));
    trial_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_theirs),
        cmocka_unit_test(losses_are_pefts_in_every_cut),
        cmocka_unit_test(saved_bits_are_read),
        cmocka_unit_test_setup_teardown(gpt2_in_4_bits_is_refused, scratch_make,
                                        scratch_remove),
        cmocka_unit_test(weights_take_their_bits),
        cmocka_unit_test_setup_teardown(merged_is_what_was_trained, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(a_saved_base_is_merged, scratch_make,
                                        scratch_remove),
        cmocka_unit_test(what_is_wrong_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
