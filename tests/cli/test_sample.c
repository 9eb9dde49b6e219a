// tranche sample: text from a model of bytes, ids from one of tokens.
#include "command.h"
#include "runs.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void train_text(void **state) {
    run_file(state, text_run, "");
    free(succeed(state, LIST("train", "run.json")));
}

static void test_bytes(void **state) {
    train_text(state);
    outcome o =
        run(state, LIST("sample", "out", "--prompt", "The fox", "--tokens", "9"));
    assert_int_equal(o.status, 0);
    assert_memory_equal(o.out, "The fox", 7);
    outcome_free(&o);
    char *text =
        succeed(state, LIST("sample", "out", "--prompt", "abc", "--tokens", "0"));
    assert_string_equal(text, "abc\n");
    free(text);
    // Longer than the context of 16.
    text = succeed(state, LIST("sample", "out", "--tokens", "40", "--prompt",
                               "a prompt of more than sixteen bytes"));
    assert_memory_equal(text, "a prompt of more than", 21);
    free(text);
}

// The same seed, the same text; without temperature the seed does not matter.
static void test_seeds(void **state) {
    train_text(state);
    char *a = succeed(state, LIST("sample", "out", "--seed", "5", "--tokens", "50"));
    char *b = succeed(state, LIST("sample", "out", "--seed", "5", "--tokens", "50"));
    char *c = succeed(state, LIST("sample", "out", "--seed", "6", "--tokens", "50"));
    assert_string_equal(a, b);
    assert_string_not_equal(a, c);
    free(a);
    free(b);
    free(c);
    a = succeed(state, LIST("sample", "out", "--seed", "5", "--temperature", "0"));
    b = succeed(state, LIST("sample", "out", "--seed", "6", "--temperature", "0"));
    assert_string_equal(a, b);
    free(a);
    free(b);
}

static char *sampled(void **state, const char *option, const char *value,
                     const char *seed) {
    return succeed(state, LIST("sample", "out", "--tokens", "60", "--seed", seed,
                               "--temperature", "3", option, value));
}

// Limits that leave one token are as good as temperature 0; those that leave all change
// nothing; the same seed gives the same text.
static void test_limits(void **state) {
    train_text(state);
    char *best =
        succeed(state, LIST("sample", "out", "--tokens", "60", "--temperature", "0"));
    char *free_text = sampled(state, "--top-p", "1", "5");
    static const struct {
        const char *option, *value;
        bool best, all;
    } cases[] = {{"--top-k", "1", true, false},   {"--top-p", "1e-9", true, false},
                 {"--top-k", "256", false, true}, {"--top-k", "999", false, true},
                 {"--top-k", "5", false, false},  {"--top-p", "0.3", false, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = sampled(state, cases[i].option, cases[i].value, "5");
        char *again = sampled(state, cases[i].option, cases[i].value, "5");
        assert_string_equal(text, again);
        assert_true((strcmp(text, best) == 0) == cases[i].best);
        assert_true((strcmp(text, free_text) == 0) == cases[i].all);
        free(again);
        free(text);
    }
    free(free_text);
    free(best);
    fail_with(state, NULL, LIST("sample", "out", "--top-p", "1.5"), 2,
              LIST("--top-p", "up to 1"));
    fail_with(state, NULL, LIST("sample", "out", "--top-p", "0"), 2, LIST("--top-p"));
    fail_with(state, NULL, LIST("sample", "out", "--top-k", "0"), 2, LIST("--top-k"));
}

// The text of temperature 0 with further arguments, up to two.
static char *best_text(void **state, const char *option, const char *value) {
    return succeed(state, LIST("sample", "out", "--temperature", "0", "--tokens", "60",
                               "--prompt", "The fox", option, value));
}

// A text ends before the first stop text that it has behind the prompt, also where that
// begins in the middle of another one, and is whole where it has none.
static void test_stop(void **state) {
    char stop[8], cut[128];
    train_text(state);
    char *whole = best_text(state, "--seed", "1");
    size_t length = strlen(whole) - 1; // its newline
    assert_int_equal(length, 7 + 60);
    for (size_t first = 7; first + 4 < length; first += 11) {
        snprintf(stop, sizeof stop, "%.4s", whole + first);
        const char *found = strstr(whole + 7, stop);
        snprintf(cut, sizeof cut, "%.*s\n", (int)(found - whole), whole);
        char *text = best_text(state, "--stop", stop);
        assert_string_equal(text, cut);
        free(text);
        stop[4] = '#'; // the text has only its beginning
        stop[5] = '\0';
        text = best_text(state, "--stop", stop);
        assert_string_equal(text, whole);
        free(text);
    }
    char *first =
        succeed(state, LIST("sample", "out", "--temperature", "0", "--stop", "#",
                            "--stop", "fox", "--prompt", "The fox", "--tokens", "60"));
    const char *found = strstr(whole + 7, "fox"); // not the prompt's
    length = found ? (size_t)(found - whole) : length;
    assert_memory_equal(first, whole, length);
    assert_string_equal(first + length, "\n");
    free(first);
    free(whole);
    fail_with(state, NULL, LIST("sample", "out", "--stop", ""), 2,
              LIST("--stop", "empty"));
}

// From logits that are not finite nothing is drawn.
static void test_not_finite(void **state) {
    static const char *const how[][2] = {
        {"--temperature", "0"}, {"--temperature", "1"}, {"--top-k", "5"}};
    run_file(state, text_run, "");
    free(succeed(state, LIST("train", "run.json", "--steps", "3", "--set",
                             "optimizer.type=SGD", "--set", "optimizer.params.lr=1e38",
                             "--set", "gradient_clipping=0")));
    for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
        fail_with(state, NULL, LIST("sample", "out", how[i][0], how[i][1]), 7,
                  LIST("logit 0 is nan", "diverged"));
    }
}

// The plans say what they keep; a precision that there is not is refused.
static void test_plans(void **state) {
    train_text(state);
    char *text = succeed(state, LIST("sample", "out", "--plan", "--dtype", "bf16"));
    assert_says(text, "A piece of the prompt:");
    assert_says(text, "A token:");
    assert_says(text, "device  cache");
    free(text);
    static const char *const types[] = {"f32", "bf16", "fp16"};
    for (int i = 0; i < 3; i++) {
        text = succeed(state, LIST("sample", "out", "--dtype", types[i], "--tokens",
                                   "5", "--prompt", "The fox"));
        assert_memory_equal(text, "The fox", 7);
        free(text);
    }
    fail_with(state, NULL, LIST("sample", "out", "--dtype", "int8"), 2,
              LIST("--dtype", "int8", "bf16"));
    fail_with(state, NULL, LIST("sample", "out", "--device", "gpu"), 2,
              LIST("device is", "gpu", "cuda"));
    fail_with(state, NULL, LIST("sample", "out", "--device", "cpu:1"), 2,
              LIST("device is", "the processor has no number"));
    fail_with(state, NULL, LIST("sample", "out", "--device", "cuda"), 2,
              LIST("no CUDA device"));
    text = succeed(state, LIST("sample", "out", "--plan", "--device", "cuda"));
    assert_says(text, "A token:");
    free(text);
    // No weights are read for them.
    text = succeed(state, LIST("sample", "out", "--plan"));
    spoil_weights(state);
    char *again = succeed(state, LIST("sample", "out", "--plan"));
    assert_string_equal(again, text);
    free(again);
    free(text);
    fail_with(state, NULL, LIST("sample", "out"), 5, LIST("model.safetensors"));
}

// Each place that holds the model gives the same.
static void test_places(void **state) {
    static const char *const paths[] = {"out", "out/checkpoints/latest",
                                        "out/checkpoints/step-00000006"};
    train_text(state);
    char *first = succeed(state, LIST("sample", "out", "--tokens", "20"));
    for (int i = 0; i < 3; i++) {
        char *text = succeed(state, LIST("sample", paths[i], "--tokens", "20"));
        assert_string_equal(text, first);
        free(text);
    }
    free(first);
}

static void train_ids(void **state) {
    uint16_t ids[400];
    for (int i = 0; i < 400; i++) {
        ids[i] = (uint16_t)(i % 50);
    }
    run_file(state, text_run, "");
    file_write(state, "ids.bin", ids, sizeof ids);
    free(succeed(state, LIST("train", "run.json", "--data", "ids.bin", "--set",
                             "data.format=tokens", "--set", "model.vocab_size=50")));
}

// A sample of ids, at temperature 0; ids: [count] or more. Returns how many.
static int best_ids(void **state, const char *option, long *ids, int count) {
    char *text = succeed(state, LIST("sample", "plain", "--prompt", "1 2, 3",
                                     "--tokens", "30", "--temperature", "0", option));
    int have = 0;
    for (char *at = text, *end = NULL; *at != '\n'; at = end) {
        assert_true(have < count);
        ids[have++] = strtol(at, &end, 10);
        assert_true(end != at);
    }
    free(text);
    return have;
}

// "plain": a Hugging Face folder with the weights of the latest checkpoint.
static void plain_folder(void **state) {
    size_t bytes;
    char *config = file_read(state, "out/checkpoints/latest/config.json", &bytes);
    assert_int_equal(mkdir(file_path(state, "plain"), 0755), 0);
    assert_int_equal(
        symlink(file_path(state, "out/checkpoints/latest/model.safetensors"),
                file_path(state, "plain/model.safetensors")),
        0);
    file_text(state, "plain/config.json", config);
    free(config);
}

// The tokens that end a text, a number or a list: generation_config.json says it, else
// config.json. They are not shown.
static void test_end_tokens(void **state) {
    const char *generation = "plain/generation_config.json";
    long whole[30], cut[30];
    char text[128];
    train_ids(state);
    plain_folder(state);
    assert_int_equal(best_ids(state, "--ignore-eos", whole, 30), 30);
    assert_int_equal(best_ids(state, NULL, cut, 30), 30);
    int first = 0; // of the last token
    while (whole[first] != whole[29]) {
        first++;
    }
    snprintf(text, sizeof text, "{\"eos_token_id\": [%ld, 50256]}", whole[29]);
    file_text(state, generation, text);
    assert_int_equal(best_ids(state, NULL, cut, 30), first);
    assert_int_equal(best_ids(state, "--ignore-eos", cut, 30), 30);
    file_text(state, generation, "{\"eos_token_id\": null}");
    json_t *keys = file_json(state, "plain/config.json");
    json_object_set_new(keys, "eos_token_id", json_integer(whole[0]));
    char *changed = json_dumps(keys, 0);
    file_text(state, "plain/config.json", changed);
    assert_int_equal(best_ids(state, NULL, cut, 30), 0);
    free(changed);
    json_decref(keys);
    static const char *const wrong[] = {"\"</s>\"", "[1, -2]", "1.5", "{}"};
    for (int i = 0; i < 4; i++) {
        snprintf(text, sizeof text, "{\"eos_token_id\": %s}", wrong[i]);
        file_text(state, generation, text);
        fail_with(state, NULL, LIST("sample", "plain"), 2,
                  LIST("generation_config.json", "eos_token_id"));
    }
}

static void test_tokens(void **state) {
    train_ids(state);
    char *text =
        succeed(state, LIST("sample", "out", "--prompt", "1 2, 3", "--tokens", "7"));
    int count = 0;
    for (char *at = text, *end = NULL; *at != '\n'; at = end) {
        long id = strtol(at, &end, 10);
        assert_true(end != at && id >= 0 && id < 50);
        count++;
    }
    assert_int_equal(count, 7);
    free(text);
    static const char *const wrong[] = {"hello", "50", "-1", "1 x",
                                        "99999999999999999999"};
    for (int i = 0; i < 5; i++) {
        fail_with(state, NULL, LIST("sample", "out", "--prompt", wrong[i]), 2,
                  LIST("--prompt", "token ids", "0 to 49"));
    }
    fail_with(state, NULL, LIST("sample", "out", "--prompt", "1", "--stop", "x"), 2,
              LIST("--stop", "tokenizer.json"));
}

// With a tokenizer.json a model of tokens takes and gives text, however it is found;
// the text is that of the same ids.
static void test_tokenizer(void **state) {
    train_tokens(state);
    char *text = succeed(state, LIST("sample", "out", "--tokenizer", gpt2_tokenizer,
                                     "--prompt", "the men said", "--tokens", "40"));
    assert_memory_equal(text, "the men said", 12);
    const char *own = file_path(state, "out/checkpoints/latest/tokenizer.json");
    assert_int_equal(symlink(gpt2_tokenizer, own), 0);
    char *found = succeed(
        state, LIST("sample", "out", "--prompt", "the men said", "--tokens", "40"));
    assert_string_equal(found, text);
    free(found);
    free(text);
    fail_with(state, NULL, LIST("sample", "out", "--tokenizer", "run.json"), 4,
              LIST("run.json: model"));
    fail_with(state, NULL,
              LIST("sample", "out", "--tokenizer",
                   TR_TEST_DATA "/tokenizers/llama2.json", "--prompt", "great"),
              2, LIST("--prompt", "the model's vocabulary of 500"));
}

static void test_refusals(void **state) {
    run_file(state, classifier_run, "");
    free(succeed(state, LIST("train", "run.json", "--out", "classifier")));
    fail_with(state, NULL, LIST("sample", "classifier"), 2,
              LIST("holds a classifier", "language models"));
    fail_with(state, NULL, LIST("sample", "nothere"), 5, LIST("nothere"));
    train_text(state);
    fail_with(state, NULL, LIST("sample", "out", "--prompt", ""), 2,
              LIST("--prompt", "at least one token"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_bytes),      TEST(test_seeds),      TEST(test_limits),
        TEST(test_not_finite), TEST(test_places),     TEST(test_tokens),
        TEST(test_refusals),   TEST(test_tokenizer),  TEST(test_stop),
        TEST(test_plans),      TEST(test_end_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
