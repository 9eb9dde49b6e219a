// What a trained model is asked, sampling and evaluation, on the CUDA backend, on a
// device of the host's memory and threads: logits and losses are the CPU's.
#include "train/samples.h"
#include "train/scratch.h"
#include "train/trial.h"

#include "backend/backend.h"
#include "plan/flow/plan.h"

#include <tranche/sample.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WORDS = 53, PROMPT = 40, TOKENS = 46 };

typedef struct family {
    const char *name, *keys;
} family;

static const family families[] = {
    {"gpt2", "\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 30, \"n_head\": 3, "
             "\"n_positions\": 64"},
    {"mistral", "\"model_type\": \"mistral\", \"num_hidden_layers\": 2, "
                "\"intermediate_size\": 40, \"hidden_size\": 32, "
                "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, "
                "\"sliding_window\": 20, \"max_position_embeddings\": 200"},
};

// A checkpoint of new weights; path: [size] its out folder.
static void save(void *const *state, const family *f, char *path, size_t size) {
    char text[1200];
    snprintf(path, size, "%s", scratch_path(state, f->name));
    snprintf(text, sizeof text,
             "{\"model\": {%s, \"vocab_size\": %d, \"initializer_range\": 0.2}, "
             "\"data\": {\"format\": \"tokens\", \"max_length\": 8}, \"steps\": 1, "
             "\"device\": \"cpu\", \"out\": \"%s\", \"train_batch_size\": 1, "
             "\"optimizer\": {\"type\": \"SGD\", \"params\": {\"lr\": 0.01}}}",
             f->keys, WORDS, path);
    trial_save_new(text, WORDS);
}

// Far apart over the largest.
static double apart(const float *a, const float *b) {
    double difference = 0, most = 0;
    for (int i = 0; i < WORDS; i++) {
        assert_true(isfinite(a[i]) && isfinite(b[i]));
        difference = fmax(difference, fabs((double)a[i] - b[i]));
        most = fmax(most, fabs((double)a[i]));
    }
    return difference / most;
}

static void check(const tr_sampler_options *options, double tolerance) {
    tr_sampler *cpu = NULL, *cuda = NULL;
    tr_sampler_options other = *options;
    tr_error err = {0};
    int32_t tokens[TOKENS];
    for (int i = 0; i < TOKENS; i++) {
        tokens[i] = (i * 29 + 11) % WORDS;
    }
    other.device = "cuda";
    trial_ok(tr_sampler_open(options, &cpu, &err), &err);
    trial_ok(tr_sampler_open(&other, &cuda, &err), &err);
    for (int64_t count = PROMPT; count <= TOKENS; count++) {
        const float *a, *b;
        trial_ok(tr_sampler_logits(cpu, tokens, count, &a, &err), &err);
        trial_ok(tr_sampler_logits(cuda, tokens, count, &b, &err), &err);
        if (!(apart(a, b) <= tolerance)) {
            fail_msg("after %d tokens: %.2e apart", (int)count, apart(a, b));
        }
    }
    tr_sampler_destroy(cpu);
    tr_sampler_destroy(cuda);
}

static void logits_are_the_cpus(void **state) {
    char path[512];
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        save(state, &families[i], path, sizeof path);
        tr_sampler_options options = {.size = sizeof options,
                                      .path = path,
                                      .length = 60,
                                      .threads = 2,
                                      .piece = 17};
        check(&options, 1e-5);
        options.compute = TR_BF16;
        check(&options, 6e-2);
    }
}

// The loss of a checkpoint on data, in two batches, by a device.
static tr_evaluated evaluated(const char *path, tr_dataset *data, const char *device) {
    const char *const set[] = {device, "data.max_length=8"};
    tr_evaluator_options options = {.size = sizeof options,
                                    .path = path,
                                    .own_data = data,
                                    .set = set,
                                    .set_count = 2,
                                    .micro_batch = 3};
    tr_evaluator *e = NULL;
    tr_error err = {0};
    tr_predictions predictions = {.count = 1};
    trial_ok(tr_evaluator_create(&options, &e, &err), &err);
    while (predictions.count > 0) {
        trial_ok(tr_evaluator_next(e, &predictions, &err), &err);
    }
    tr_evaluated result = tr_evaluator_result(e);
    bool on_cuda = tr_evaluator_plan(e)->request.backend == TR_BACKEND_CUDA;
    assert_int_equal(on_cuda, strstr(device, "cuda") != NULL);
    tr_evaluator_destroy(e);
    return result;
}

static void losses_are_the_cpus(void **state) {
    char path[512];
    samples s;
    samples_tokens(&s, 5, 8, WORDS, 2);
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        save(state, &families[i], path, sizeof path);
        tr_evaluated cpu = evaluated(path, s.dataset, "device=cpu");
        tr_evaluated cuda = evaluated(path, s.dataset, "device=cuda");
        assert_true(cpu.targets > 0 && cpu.targets == cuda.targets);
        assert_float_equal(cuda.loss, cpu.loss, 1e-5 * cpu.loss);
    }
    samples_free(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(logits_are_the_cpus, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(losses_are_the_cpus, scratch_make,
                                        scratch_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
