// tranche sample: text from a model of bytes, ids from one of tokens.
#include "command.h"
#include "runs.h"

#include <stdlib.h>
#include <string.h>
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
                  LIST("logit of token 0 is nan", "diverged"));
    }
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

static void test_tokens(void **state) {
    uint16_t ids[400];
    for (int i = 0; i < 400; i++) {
        ids[i] = (uint16_t)(i % 50);
    }
    run_file(state, text_run, "");
    file_write(state, "ids.bin", ids, sizeof ids);
    free(succeed(state, LIST("train", "run.json", "--data", "ids.bin", "--set",
                             "data.format=tokens", "--set", "model.vocab_size=50")));
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
}

// With a tokenizer.json a model of tokens takes and gives text, however it is found;
// the text is that of the same ids.
static void test_tokenizer(void **state) {
    const char *gpt2 = TR_TEST_DATA "/tokenizers/gpt2.json";
    file_words(state, "a.txt", 2000);
    free(
        succeed(state, LIST("tokenize", "--tokenizer", gpt2, "a.txt", "--out", "ids")));
    run_file(state, text_run, "");
    free(succeed(state, LIST("train", "run.json", "--data", "ids", "--set",
                             "data.format=tokens", "--set", "model.vocab_size=500")));
    char *text = succeed(state, LIST("sample", "out", "--tokenizer", gpt2, "--prompt",
                                     "the men said", "--tokens", "40"));
    assert_memory_equal(text, "the men said", 12);
    const char *own = file_path(state, "out/checkpoints/latest/tokenizer.json");
    assert_int_equal(symlink(gpt2, own), 0);
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
        TEST(test_bytes),      TEST(test_seeds),     TEST(test_limits),
        TEST(test_not_finite), TEST(test_places),    TEST(test_tokens),
        TEST(test_refusals),   TEST(test_tokenizer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
