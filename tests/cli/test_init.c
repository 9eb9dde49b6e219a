// What tranche init writes trains, whatever the data are.
#include "command.h"
#include "runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// Writes a run file for the data, and trains from it for two steps.
static char *init_and_train(void **state, const char *const *data) {
    const char *words[8] = {"init"};
    int count = 1;
    for (int i = 0; data[i]; i++) {
        words[count++] = data[i];
    }
    words[count++] = "--out";
    words[count++] = "run.json";
    char *said = succeed(state, words);
    assert_says(said, "next: tranche train run.json\n");
    char *text = file_read(state, "run.json", NULL);
    assert_says(text, "    // ");
    free(
        succeed(state, LIST("train", "run.json", "--steps", "2", "--resume", "never")));
    json_t *resolved = file_json(state, "out/run.json");
    assert_true(number_in(resolved, "steps") == 2);
    json_decref(resolved);
    free(said);
    return text;
}

static void test_text(void **state) {
    file_words(state, "book \"1\".txt", 200000);
    char *text = init_and_train(state, LIST("book \"1\".txt"));
    assert_says(text, "\"format\": \"bytes\"");
    assert_says(text, "\"train\": [\"book \\\"1\\\".txt\"]");
    assert_says(text, "\"n_layer\": 4");
    assert_says(text, "\"validation\": 0.05");
    free(text);
}

// Standard output that is sent on gets the run file, to a file even where the shell has
// made run.json of it; so does any with "--out -".
static void test_standard_output(void **state) {
    static const setting sent = {.out = "run.json"}, piped = {.out = NULL};
    const setting *const all[] = {&sent, &piped, &piped};
    file_words(state, "a.txt", 5000);
    for (int i = 0; i < 3; i++) {
        outcome o = run_with(state, all[i],
                             i == 2 ? LIST("init", "a.txt", "--out", "-")
                                    : LIST("init", "a.txt"));
        assert_int_equal(o.status, 0);
        assert_says(o.err, "standard output: ");
        assert_says(o.err, " steps, in ");
        if (i > 0) {
            file_text(state, "run.json", o.out);
        }
        outcome_free(&o);
        char *text = file_read(state, "run.json", NULL);
        assert_says(text, "\"train\": [\"a.txt\"]");
        assert_null(strstr(text, "next: "));
        free(text);
        free(succeed(state,
                     LIST("train", "run.json", "--steps", "1", "--resume", "never")));
    }
}

// A few lines still make a run.
static void test_little_text(void **state) {
    file_words(state, "a.txt", 120);
    char *text = init_and_train(state, LIST("a.txt"));
    assert_says(text, "\"n_positions\": 8");
    assert_null(strstr(text, "validation"));
    free(text);
    file_text(state, "b.txt", "so few");
    fail_with(state, NULL, LIST("init", "b.txt", "--out", "b.json"), 4,
              LIST("too few", "name more data"));
}

static void test_folder(void **state) {
    assert_int_equal(mkdir(file_path(state, "notes"), 0700), 0);
    file_words(state, "notes/a.txt", 5000);
    file_words(state, "notes/b.txt", 5000);
    char *text = init_and_train(state, LIST("notes"));
    assert_says(text, "text: 2 files");
    free(text);
}

static void test_tokens(void **state) {
    uint16_t ids[4000];
    for (int i = 0; i < 4000; i++) {
        ids[i] = (uint16_t)(i * i % 777 + 256);
    }
    file_write(state, "ids.bin", ids, sizeof ids);
    char *text = init_and_train(state, LIST("ids.bin"));
    assert_says(text, "\"format\": \"tokens\"");
    assert_says(text, "\"dtype\": \"u16\"");
    assert_says(text, "\"vocab_size\": 1088,");
    free(text);
}

static void test_table(void **state) {
    char text[8000] = "a,b,label\n";
    for (int i = 0; i < 100; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%d,%d,%d\n", i % 7, i % 3, i % 3);
    }
    file_text(state, "samples.csv", text);
    char *made = init_and_train(state, LIST("samples.csv"));
    assert_says(made, "\"format\": \"csv\"");
    assert_says(made, "\"layer_sizes\": [2, 16, 3]");
    free(made);
}

// Whichever of the two is named first.
static void test_arrays(void **state) {
    bad_sample_run(state, -1);
    for (int i = 0; i < 2; i++) {
        const char *first = i ? "x.npy" : "y.npy", *second = i ? "y.npy" : "x.npy";
        remove(file_path(state, "run.json"));
        char *text = init_and_train(state, LIST(first, second));
        assert_says(text, "\"train\": [\"x.npy\"]");
        assert_says(text, "\"labels\": \"y.npy\"");
        assert_says(text, "\"layer_sizes\": [2, 16, 3]");
        free(text);
    }
    fail_with(state, NULL, LIST("init", "x.npy", "--out", "b.json"), 2, LIST("labels"));
}

static const char chats_run[] =
    "{\"model\": {\"model_type\": \"gpt2\", \"n_layer\": 1, \"n_embd\": 16, "
    "\"n_head\": 2, \"n_positions\": 48}, \"data\": {\"format\": \"jsonl\", \"train\": "
    "[\"chats.jsonl\"], \"tokenizer\": \"tok\"}, \"steps\": 1, \"out\": \"base\", "
    "\"train_batch_size\": 2}";

// A small model that has a tokenizer and a chat template.
static void make_base(void **state) {
    FILE *from = fopen(TR_TEST_DATA "/tokenizers/smollm.json", "rb");
    static char text[1 << 16];
    assert_non_null(from);
    size_t bytes = fread(text, 1, sizeof text, from);
    fclose(from);
    assert_int_equal(mkdir(file_path(state, "tok"), 0700), 0);
    file_write(state, "tok/tokenizer.json", text, bytes);
    file_text(state, "tok/tokenizer_config.json",
              "{\"eos_token\": {\"content\": \"<|end|>\"}, \"chat_template\": "
              "\"{% for m in messages %}{{ m.role }}: {{ m.content }}{{ eos_token }}"
              "{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}\"}");
    file_text(state, "base.json", chats_run);
    free(succeed(state, LIST("train", "base.json")));
}

static void test_records(void **state) {
    char chats[8192] = "", texts[8192] = "";
    for (int i = 0; i < 50; i++) {
        snprintf(chats + strlen(chats), sizeof chats - strlen(chats),
                 "{\"messages\": [{\"role\": \"user\", \"content\": \"the men %d\"}, "
                 "{\"role\": \"assistant\", \"content\": \"said that\"}]}\n",
                 i);
        snprintf(texts + strlen(texts), sizeof texts - strlen(texts),
                 "{\"text\": \"the men said that %d\"}\n", i);
    }
    file_text(state, "chats.jsonl", chats);
    file_text(state, "texts.jsonl", texts);
    make_base(state);
    fail_with(state, NULL, LIST("init", "chats.jsonl"), 2,
              LIST("tokenizer", "--model"));
    char *made = init_and_train(
        state, LIST("chats.jsonl", "--model", "base/checkpoints/latest"));
    assert_says(made, "\"loss_on\": \"assistant\"");
    assert_says(made, "\"max_length\": 48");
    assert_says(made, "\"adapter\": {\"type\": \"lora\"");
    free(made);
    remove(file_path(state, "run.json"));
    made = init_and_train(state,
                          LIST("texts.jsonl", "--model", "base/checkpoints/latest"));
    assert_null(strstr(made, "loss_on"));
    free(made);
    file_words(state, "a.txt", 30000);
    remove(file_path(state, "run.json"));
    made = init_and_train(state, LIST("a.txt", "--model", "base/checkpoints/latest"));
    assert_says(made, "\"format\": \"text\"");
    free(made);
}

static void test_errors(void **state) {
    file_words(state, "a.txt", 3000);
    file_text(state, "b.csv", "1,2,0\n3,4,1\n");
    file_text(state, "bad.jsonl", "{\"txet\": 1}\n");
    file_text(state, "\xff.txt", "text that is long enough to be trained on, at least");
    fail_with(state, NULL, LIST("init"), 2, LIST("needs DATA..."));
    fail_with(state, NULL, LIST("init", "none.txt"), 4, LIST("none.txt"));
    fail_with(state, NULL, LIST("init", "a.txt", "b.csv"), 2,
              LIST("b.csv is csv", "before it are text"));
    fail_with(state, NULL, LIST("init", "bad.jsonl", "--model", "m"), 4,
              LIST("bad.jsonl", "\"messages\""));
    fail_with(state, NULL, LIST("init", "\xff.txt"), 2, LIST("no UTF-8"));
    free(succeed(state, LIST("init", "a.txt", "--out", "mine.json")));
    fail_with(state, NULL, LIST("init", "a.txt", "--out", "mine.json"), 2,
              LIST("mine.json is there already", "--out"));
    fail_with(state, NULL, LIST("init", "a.txt", "--out", "no/mine.json"), 5,
              LIST("no/mine.json"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_text),   TEST(test_standard_output), TEST(test_little_text),
        TEST(test_folder), TEST(test_tokens),          TEST(test_table),
        TEST(test_arrays), TEST(test_records),         TEST(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
