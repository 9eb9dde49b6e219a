// Ten updates of GPT-2 and of a classifier against PyTorch's, each in several cuts
// and with every kind of kernels; and GPT-2's logits against Hugging Face's.
// Labels: isa check guard
#include "backend/cpu/isa.h"
#include "files/safetensors/tensor_set.h"
#include "golden.h"
#include "scratch.h"

#include <tranche/sample.h>

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STEPS = 10, SETTINGS = 3 };

static const char *const cuts[][SETTINGS] = {
    {"train_micro_batch_size_per_gpu=2", "execution.wave=1",
     "activation_checkpointing.number_checkpoints=0"},
    {"train_micro_batch_size_per_gpu=6", "execution.wave=1",
     "activation_checkpointing.number_checkpoints=1"},
    {"train_micro_batch_size_per_gpu=1", "execution.wave=6",
     "activation_checkpointing.number_checkpoints=2"},
    {"train_micro_batch_size_per_gpu=4", "execution.wave=2",
     "activation_checkpointing.number_checkpoints=0"},
    {"train_micro_batch_size_per_gpu=1", "execution.wave=4",
     "activation_checkpointing.number_checkpoints=1"},
};

// Where the loss is over the whole step, all its micro-batches are there at once, or
// are gone through twice.
static const char *const whole_cuts[][SETTINGS] = {
    {"train_micro_batch_size_per_gpu=6", "execution.wave=1",
     "activation_checkpointing.number_checkpoints=0"},
    {"train_micro_batch_size_per_gpu=1", "execution.wave=6",
     "activation_checkpointing.number_checkpoints=2"},
    {"train_micro_batch_size_per_gpu=2", "execution.wave=3",
     "activation_checkpointing.number_checkpoints=0"},
    {"train_micro_batch_size_per_gpu=4", "execution.wave=2",
     "activation_checkpointing.number_checkpoints=1"},
    {"train_micro_batch_size_per_gpu=1", "execution.wave=2", "contrastive.passes=2"},
    {"train_micro_batch_size_per_gpu=4", "contrastive.passes=2",
     "activation_checkpointing.number_checkpoints=2"},
};

static void check_cut(const char *golden, const char *const *settings, int isa_limit,
                      bool reference, const json_t *expected) {
    run_options options = {
        .file = "run.json", .set = settings, .set_count = SETTINGS, .resume = "never"};
    tr_step_result results[STEPS];
    snapshot start, end, final;
    trial t;
    trial_open_kernels(&t, &options, isa_limit, reference);
    assert_int_equal(tr_run_steps(t.run), STEPS);
    snapshot_take(&start, &t);
    trial_steps(&t, STEPS, results);
    snapshot_take(&end, &t);
    golden_read_final(t.engine->settings->optimizer, &start, &final);
    trial_close(&t);
    for (size_t s = 0; s < STEPS; s++) {
        golden_check_step(golden, &results[s], json_array_get(expected, s));
    }
    snapshot_assert_close(&start, &final, &end, 1e-4, golden);
    snapshot_free(&start);
    snapshot_free(&end);
    snapshot_free(&final);
}

static void ten_updates(void **state) {
    const char *golden = *state;
    json_error_t error;
    golden_go_to(golden);
    json_t *all = json_load_file("expected.json", 0, &error);
    const json_t *expected = json_object_get(all, "steps");
    assert_int_equal(json_array_size(expected), STEPS);
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        check_cut(golden, cuts[i], 0, false, expected);
    }
    for (int limit = 1; limit <= TR_ISA_COUNT; limit++) {
        check_cut(golden, cuts[3], limit, false, expected);
    }
    check_cut(golden, cuts[3], 0, true, expected);
    json_decref(all);
}

static void ten_updates_of_whole_steps(void **state) {
    const char *golden = *state;
    json_error_t error;
    golden_go_to(golden);
    json_t *all = json_load_file("expected.json", 0, &error);
    const json_t *expected = json_object_get(all, "steps");
    assert_int_equal(json_array_size(expected), STEPS);
    for (size_t i = 0; i < sizeof whole_cuts / sizeof *whole_cuts; i++) {
        check_cut(golden, whole_cuts[i], 0, false, expected);
    }
    check_cut(golden, whole_cuts[3], 0, true, expected);
    json_decref(all);
}

// ---- logits

typedef struct forward {
    int64_t rows, length, vocabulary;
    int32_t *ids;  // [rows, length]
    float *logits; // [rows, length, vocabulary]
} forward;

static void read_forward(forward *f) {
    tr_error err = {0};
    tr_tensor_set *set = NULL;
    trial_ok(tr__tensor_set_open("forward.safetensors", &set, &err), &err);
    const tr_stored_tensor *ids = tr__tensor_set_find(set, "input_ids");
    const tr_stored_tensor *logits = tr__tensor_set_find(set, "logits");
    assert_true(ids && logits && ids->dtype == TR_I32);
    *f = (forward){ids->dim[0], ids->dim[1], logits->dim[2], NULL, NULL};
    f->ids = malloc((size_t)ids->bytes);
    f->logits = malloc((size_t)logits->bytes);
    trial_ok(tr__tensor_read(set, ids, 0, ids->count, f->ids, &err), &err);
    trial_ok(tr__tensor_read_f32(set, logits, 0, logits->count, f->logits, &err), &err);
    tr__tensor_set_close(set);
}

// The answer after every prefix of every row.
static void logits(void **state) {
    tr_error err = {0};
    tr_sampler *sampler = NULL;
    forward f;
    golden_go_to(*state);
    read_forward(&f);
    trial_ok(tr_sampler_create("initial", f.length, 2, &sampler, &err), &err);
    assert_int_equal(tr_sampler_vocabulary(sampler), f.vocabulary);
    for (int64_t i = 0; i < f.rows * f.length; i++) {
        const float *got, *expected = f.logits + i * f.vocabulary;
        trial_ok(tr_sampler_logits(sampler, f.ids + i / f.length * f.length,
                                   i % f.length + 1, &got, &err),
                 &err);
        for (int64_t v = 0; v < f.vocabulary; v++) {
            assert_float_equal(got[v], expected[v], 1e-5);
        }
    }
    tr_sampler_destroy(sampler);
    free(f.ids);
    free(f.logits);
}

#define TEN_UPDATES(folder)                                                            \
    { "ten_updates: " folder, ten_updates, NULL, NULL, folder }
#define WHOLE_STEPS(folder)                                                            \
    { "ten_updates: " folder, ten_updates_of_whole_steps, NULL, NULL, folder }
#define LOGITS(folder)                                                                 \
    { "logits: " folder, logits, NULL, NULL, folder }

int main(void) {
    const struct CMUnitTest tests[] = {
        TEN_UPDATES("gpt2"),
        TEN_UPDATES("gpt2-odd"),
        TEN_UPDATES("gpt2-frozen"),
        TEN_UPDATES("llama"),
        TEN_UPDATES("llama-grouped"),
        TEN_UPDATES("llama3"),
        TEN_UPDATES("llama-linear"),
        TEN_UPDATES("llama-yarn"),
        TEN_UPDATES("mistral"),
        TEN_UPDATES("qwen2"),
        TEN_UPDATES("qwen3"),
        TEN_UPDATES("gpt2-packed"),
        TEN_UPDATES("mistral-packed"),
        TEN_UPDATES("bert-class"),
        TEN_UPDATES("roberta-class"),
        TEN_UPDATES("gpt2-class"),
        TEN_UPDATES("qwen3-class"),
        TEN_UPDATES("bert-set"),
        TEN_UPDATES("roberta-value"),
        TEN_UPDATES("bert-masked"),
        TEN_UPDATES("bert-next"),
        TEN_UPDATES("roberta-masked"),
        WHOLE_STEPS("bert-pairs"),
        WHOLE_STEPS("roberta-triples"),
        WHOLE_STEPS("bert-scale"),
        TEN_UPDATES("mlp"),
        TEN_UPDATES("mlp-npy"),
        TEN_UPDATES("mlp-adam"),
        TEN_UPDATES("mlp-sgd"),
        TEN_UPDATES("mlp-momentum"),
        TEN_UPDATES("mlp-lion"),
        TEN_UPDATES("mlp-lamb"),
        TEN_UPDATES("mlp-lamb-paper"),
        TEN_UPDATES("mlp-lars"),
        TEN_UPDATES("mlp-lars-all"),
        TEN_UPDATES("mlp-cycle"),
        TEN_UPDATES("mlp-range"),
        LOGITS("gpt2"),
        LOGITS("gpt2-odd"),
        LOGITS("llama"),
        LOGITS("llama-grouped"),
        LOGITS("llama3"),
        LOGITS("llama-linear"),
        LOGITS("llama-yarn"),
        LOGITS("mistral"),
        LOGITS("qwen2"),
        LOGITS("qwen3"),
    };
    void *cache = NULL;
    if (scratch_cache(&cache) != 0) {
        return 1;
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return scratch_remove(&cache) == 0 ? failed : 1;
}
