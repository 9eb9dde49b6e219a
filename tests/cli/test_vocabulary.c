// Labels: ranks
// A padded vocabulary: checkpoints have more rows, and nothing else is another.
#include "command.h"
#include "runs.h"

#include "files/safetensors/tensor_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 16, TOKENS = 256, ROWS = 300 };

static const char name[] = "transformer.wte.weight";
static const char pad[] = "vocabulary.pad_to_multiple_of=100";

// The rows of the token embedding, or of one of its optimizer states; rows: how many
// there must be. To be freed.
static float *rows_of(void **state, const char *path, const char *tensor,
                      int64_t rows) {
    tr_tensor_set *set = NULL;
    tr_error err = {0};
    assert_int_equal(tr__tensor_set_open(file_path(state, path), &set, &err), 0);
    const tr_stored_tensor *stored = tr__tensor_set_find(set, tensor);
    assert_non_null(stored);
    assert_int_equal(stored->dim[0], rows);
    assert_int_equal(stored->dim[1], WIDTH);
    float *values = calloc((size_t)rows, WIDTH * sizeof *values);
    assert_int_equal(tr__tensor_read_f32(set, stored, 0, rows * WIDTH, values, &err),
                     0);
    tr__tensor_set_close(set);
    return values;
}

static void assert_padded(void **state, const char *file, const char *tensor) {
    static const float zeros[(ROWS - TOKENS) * WIDTH];
    char a[128], b[128];
    snprintf(a, sizeof a, "plain/checkpoints/latest/%s", file);
    snprintf(b, sizeof b, "out/checkpoints/latest/%s", file);
    float *plain = rows_of(state, a, tensor, TOKENS);
    float *padded = rows_of(state, b, tensor, ROWS);
    assert_memory_equal(plain, padded, (size_t)TOKENS * WIDTH * sizeof *plain);
    assert_memory_equal(zeros, padded + TOKENS * WIDTH, sizeof zeros);
    free(plain);
    free(padded);
}

static int64_t config_of(void **state, const char *path, const char *key) {
    json_t *config = file_json(state, path);
    const json_t *value = json_object_get(config, key);
    int64_t number = value ? (int64_t)json_integer_value(value) : -1;
    json_decref(config);
    return number;
}

static const char config[] = "out/checkpoints/latest/config.json";

// Neither loss nor weights know of it, nor does what is sampled.
static void test_same_training(void **state) {
    run_file(state, text_run, "");
    free(succeed(state, LIST("train", "run.json", "--out", "plain")));
    free(succeed(state, LIST("train", "run.json", "--set", pad)));
    assert_int_equal(config_of(state, config, "vocab_size"), ROWS);
    assert_int_equal(config_of(state, config, "unpadded_vocab_size"), TOKENS);
    assert_int_equal(
        config_of(state, "plain/checkpoints/latest/config.json", "unpadded_vocab_size"),
        -1);
    assert_padded(state, "model.safetensors", name);
    assert_padded(state, "optimizer.safetensors", "transformer.wte.weight.exp_avg");
    assert_padded(state, "optimizer.safetensors", "transformer.wte.weight.exp_avg_sq");
    char *a = succeed(state,
                      LIST("sample", "plain", "--temperature", "9", "--tokens", "300"));
    char *b =
        succeed(state, LIST("sample", "out", "--temperature", "9", "--tokens", "300"));
    assert_string_equal(a, b);
    free(a);
    free(b);
    a = succeed(state, LIST("evaluate", "plain"));
    b = succeed(state, LIST("evaluate", "out"));
    assert_string_equal(a, b);
    free(a);
    free(b);
}

// Of a model whose head is a tensor of its own, both.
static void test_head(void **state) {
    static const char model[] =
        "model={\"model_type\": \"llama\", \"hidden_size\": 16, "
        "\"intermediate_size\": 24, \"num_hidden_layers\": 1, "
        "\"num_attention_heads\": 2, \"max_position_embeddings\": 16, "
        "\"tie_word_embeddings\": false}";
    run_file(state, text_run, "");
    free(succeed(state, LIST("train", "run.json", "--set", model, "--out", "plain")));
    free(succeed(state, LIST("train", "run.json", "--set", model, "--set", pad)));
    assert_padded(state, "model.safetensors", "model.embed_tokens.weight");
    assert_padded(state, "model.safetensors", "lm_head.weight");
    assert_padded(state, "optimizer.safetensors", "lm_head.weight.exp_avg");
    free(succeed(state, LIST("sample", "out", "--tokens", "20")));
}

// A run that goes on, one on ranks, and one in slices write the same bytes.
static void test_same_files(void **state) {
    static const char weights[] = "out/checkpoints/latest/model.safetensors";
    static const char optimizer[] = "out/checkpoints/latest/optimizer.safetensors";
    run_file(state, text_run, ", \"vocabulary\": {\"pad_to_multiple_of\": 100}");
    free(succeed(state, LIST("train", "run.json")));
    free(succeed(state, LIST("train", "run.json", "--out", "b", "--steps", "3")));
    free(succeed(state, LIST("train", "run.json", "--out", "b")));
    assert_same_file(state, weights, "b/checkpoints/latest/model.safetensors");
    assert_same_file(state, optimizer, "b/checkpoints/latest/optimizer.safetensors");
    free(succeed(state, LIST("train", "run.json", "--out", "sliced", "--steps", "1",
                             "--set", "execution.vocabulary_slices=3")));
    free(rows_of(state, "sliced/checkpoints/latest/model.safetensors", name, ROWS));
    if (TR_MPIRUN[0] == '\0') {
        return;
    }
    static const setting shell = {.program = "/bin/sh"};
    static const char *const stage[] = {"--set", "zero_optimization.stage=3", "--set",
                                        "execution.reproducible=true"};
    free(succeed(state, LIST("train", "run.json", "--out", "one", stage[0], stage[1],
                             stage[2], stage[3])));
    outcome o =
        run_with(state, &shell,
                 LIST(TR_LAUNCH, TR_MPIRUN, "2", TR_PROGRAM, "train", "run.json",
                      "--out", "two", stage[0], stage[1], stage[2], stage[3]));
    if (o.status != 0) {
        fail_msg("%s%s", o.out, o.err);
    }
    outcome_free(&o);
    assert_same_file(state, "one/checkpoints/latest/model.safetensors",
                     "two/checkpoints/latest/model.safetensors");
    assert_same_file(state, "one/checkpoints/latest/optimizer.safetensors",
                     "two/checkpoints/latest/optimizer.safetensors");
}

// As the model of another run: its padding stays, or grows with the key.
static void test_as_model(void **state) {
    run_file(state, text_run, "");
    free(succeed(state, LIST("train", "run.json", "--out", "plain")));
    free(succeed(state, LIST("train", "run.json", "--set", pad, "--out", "padded")));
    free(succeed(state, LIST("train", "run.json", "--model", "padded", "--steps", "1",
                             "--set", "optimizer.params.lr=0")));
    assert_padded(state, "model.safetensors", name);
    assert_int_equal(config_of(state, config, "unpadded_vocab_size"), TOKENS);
    free(succeed(state,
                 LIST("train", "run.json", "--model", "padded", "--steps", "1", "--out",
                      "more", "--set", "vocabulary.pad_to_multiple_of=64")));
    free(rows_of(state, "more/checkpoints/latest/model.safetensors", name, 320));
    free(succeed(state, LIST("train", "run.json", "--model", "plain", "--steps", "1",
                             "--out", "again", "--set", pad)));
    free(rows_of(state, "again/checkpoints/latest/model.safetensors", name, ROWS));
}

static void test_refusals(void **state) {
    run_file(state, classifier_run, "");
    fail_with(state, NULL, LIST("train", "run.json", "--set", pad), 2,
              LIST("vocabulary.pad_to_multiple_of", "type mlp has no vocabulary"));
    run_file(state, text_run, "");
    fail_with(state, NULL,
              LIST("train", "run.json", "--set", "vocabulary.pad_to_multiple_of=0"), 2,
              LIST("vocabulary.pad_to_multiple_of is 0"));
    fail_with(state, NULL,
              LIST("train", "run.json", "--set", "model.unpadded_vocab_size=300"), 2,
              LIST("unpadded_vocab_size is 300; it must be 1 to 256"));
    free(succeed(state, LIST("train", "run.json", "--steps", "1")));
    fail_with(state, NULL, LIST("train", "run.json", "--steps", "2", "--set", pad), 5,
              LIST("has another shape"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_same_training), TEST(test_head),     TEST(test_same_files),
        TEST(test_as_model),      TEST(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
