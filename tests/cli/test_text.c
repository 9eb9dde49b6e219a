// Labels: ranks
// Training on text by a tokenizer, from the run file to the text of a sample: the ids
// are made once, checkpoints carry the tokenizer.
#include "command.h"

#include "base/hash.h"
#include "base/rng.h"
#include "files/safetensors/tensor_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char gpt2[] = TR_TEST_DATA "/tokenizers/gpt2.json";
static const setting shell = {.program = "/bin/sh"};

enum { TOKENS = 500, MORE = 503, WIDTH = 16 };

// A GPT-2 of 2 layers on the folder docs; the tokenizer's folder has all that a
// Hugging Face folder may have.
static const char run_text[] =
    "{\"model\": {\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 16, "
    "\"n_head\": "
    "2, \"n_positions\": 16%s},\n"
    " \"data\": {\"format\": \"text\", \"train\": [\"docs\"]%s},\n"
    " \"steps\": 4, \"seed\": 3, \"out\": \"out\", \"train_batch_size\": 4}";

static void write_run(void **state, const char *model, const char *data) {
    char text[1024];
    int length = snprintf(text, sizeof text, run_text, model, data);
    assert_true(length > 0 && (size_t)length < sizeof text);
    file_text(state, "run.json", text);
}

static void copy_tokenizer(void **state, const char *name) {
    FILE *from = fopen(gpt2, "rb");
    char text[1 << 16];
    assert_non_null(from);
    size_t bytes = fread(text, 1, sizeof text, from);
    fclose(from);
    file_write(state, name, text, bytes);
}

static int text_make(void **state) {
    if (folder_make(state) != 0 ||
        setenv("XDG_CACHE_HOME", file_path(state, "cache"), 1) != 0 ||
        mkdir(file_path(state, "docs"), 0777) != 0 ||
        mkdir(file_path(state, "tok"), 0777) != 0) {
        return -1;
    }
    file_words(state, "docs/a.txt", 2000);
    file_text(state, "docs/b.txt", "the men said that it was great");
    copy_tokenizer(state, "tok/tokenizer.json");
    file_text(state, "tok/tokenizer_config.json",
              "{\"eos_token\": \"<|end|>\", \"tokenizer_class\": "
              "\"PreTrainedTokenizerFast\"}");
    file_text(state, "tok/chat_template.jinja", "{{ messages }}");
    file_text(state, "tok/generation_config.json", "{\"eos_token_id\": 0}");
    write_run(state, "", ", \"tokenizer\": \"tok\"");
    return 0;
}

static const char weights[] = "out/checkpoints/latest/model.safetensors";

// How many files are in the cache folder.
static int cached(void **state) {
    setting count = {.program = "/bin/sh"};
    outcome o = run_with(state, &count, LIST("-c", "ls cache/tranche | grep -c text-"));
    int files = atoi(o.out);
    outcome_free(&o);
    return files;
}

static void test_train_and_sample(void **state) {
    outcome o = run(state, LIST("train", "run.json"));
    assert_int_equal(o.status, 0);
    assert_says(o.err, "data.train: tokenized 1.98 KiB of text");
    assert_says(o.err, "2 files, 1.98 KiB of text, 2 documents, ");
    assert_says(o.err, "tokens in windows of 16 tokens");
    assert_says(o.out, "tranche sample out --prompt \"Once\"");
    outcome_free(&o);
    json_t *config = file_json(state, "out/checkpoints/latest/config.json");
    assert_int_equal(json_integer_value(json_object_get(config, "vocab_size")), TOKENS);
    json_decref(config);
    char *text = succeed(
        state, LIST("sample", "out", "--prompt", "the men said", "--tokens", "20"));
    assert_memory_equal(text, "the men said", 12);
    free(text);
    // Once: not when the run goes on, nor for another one.
    o = run(state, LIST("train", "run.json", "--steps", "6"));
    assert_int_equal(o.status, 0);
    assert_says(o.err, "(step 4)");
    assert_null(strstr(o.err, "tokenized"));
    outcome_free(&o);
    assert_int_equal(cached(state), 1);
}

// Rows of whole documents: what packing came to is said, the step is that of the
// documents apart, and neither ranks nor a resumed run changes a bit.
static void test_packed(void **state) {
    static const char once[] = "once/checkpoints/latest/model.safetensors";
    write_run(state, ", \"resid_pdrop\": 0, \"embd_pdrop\": 0, \"attn_pdrop\": 0",
              ", \"tokenizer\": \"tok\", \"packing\": true, \"document_separator\": "
              "\" the \"");
    const char *sums = "execution.reproducible=true";
    const char *micro = "train_micro_batch_size_per_gpu=1";
    outcome o = run(state, LIST("train", "run.json", "--out", "once", "--set", sums,
                                "--set", micro));
    assert_int_equal(o.status, 0);
    assert_says(o.err, " documents packed into ");
    assert_says(o.err, " rows of 16 tokens; ");
    outcome_free(&o);
    free(succeed(state, LIST("train", "run.json", "--steps", "2", "--set", sums,
                             "--set", micro)));
    free(succeed(state, LIST("train", "run.json", "--steps", "4", "--set", sums,
                             "--set", micro)));
    assert_same_file(state, once, weights);
    free(succeed(state,
                 LIST("train", "run.json", "--ranks", "2", "--out", "ranks", "--set",
                      sums, "--set", micro, "--set", "zero_optimization.stage=2")));
    assert_same_file(state, once, "ranks/checkpoints/latest/model.safetensors");
    char *text = succeed(state, LIST("check", "run.json"));
    assert_says(text, "ok  each packed document in a sample of its own");
    free(text);
    free(
        succeed(state, LIST("sample", "once", "--prompt", "the men", "--tokens", "5")));
}

// The ids are those of tranche tokenize, and the training is the same to the bit.
static void test_as_tokens(void **state) {
    free(succeed(state,
                 LIST("tokenize", "--tokenizer", gpt2, "docs/a.txt", "--out", "ids")));
    free(succeed(state, LIST("train", "run.json", "--data", "docs/a.txt")));
    write_run(state, ", \"vocab_size\": 500", "");
    free(succeed(state, LIST("train", "run.json", "--data", "ids", "--set",
                             "data.format=tokens", "--out", "as-tokens")));
    assert_same_file(state, weights, "as-tokens/checkpoints/latest/model.safetensors");
    // A file that is no folder's tokenizer.json.
    char data[512];
    snprintf(data, sizeof data, ", \"tokenizer\": \"%s\"", gpt2);
    write_run(state, "", data);
    free(succeed(
        state, LIST("train", "run.json", "--data", "docs/a.txt", "--out", "as-file")));
    assert_same_file(state, weights, "as-file/checkpoints/latest/model.safetensors");
    copy_tokenizer(state, "same.json");
    assert_same_file(state, "same.json", "as-file/checkpoints/latest/tokenizer.json");
}

// Files that go with a model are in its checkpoints, and come back from there.
static void test_companions(void **state) {
    static const char *const names[] = {"tokenizer.json", "tokenizer_config.json",
                                        "chat_template.jinja"};
    char from[64], to[128];
    free(succeed(state, LIST("train", "run.json")));
    for (size_t i = 0; i < 3; i++) {
        snprintf(from, sizeof from, "tok/%s", names[i]);
        snprintf(to, sizeof to, "out/checkpoints/latest/%s", names[i]);
        assert_same_file(state, from, to);
    }
    // That is the model's; its tokenizer was another folder's.
    assert_int_not_equal(
        access(file_path(state, "out/checkpoints/latest/generation_config.json"), F_OK),
        0);
    file_text(state, "out/checkpoints/latest/generation_config.json", "{}");
    // The out folder as the model: all of it, from the model's folder.
    free(succeed(state, LIST("train", "run.json", "--model", "out", "--out", "b",
                             "--set", "data.tokenizer=null")));
    assert_same_file(state, "tok/tokenizer.json",
                     "b/checkpoints/latest/tokenizer.json");
    assert_same_file(state, "out/checkpoints/latest/generation_config.json",
                     "b/checkpoints/latest/generation_config.json");
    // Its own tokenizer serves an evaluation, whatever has become of the other one.
    free(succeed(state, LIST("evaluate", "out", "--data", "docs/a.txt", "--set",
                             "data.eos_token=null")));
    assert_int_equal(rename(file_path(state, "tok"), file_path(state, "gone")), 0);
    free(succeed(state, LIST("evaluate", "out", "--data", "docs")));
    // They are part of what is verified.
    file_text(state, "out/checkpoints/latest/tokenizer_config.json", "{}");
    assert_int_equal(rename(file_path(state, "gone"), file_path(state, "tok")), 0);
    fail_with(state, NULL, LIST("train", "run.json", "--steps", "5"), 5,
              LIST("tokenizer_config.json: damaged checkpoint"));
}

// Also where the run reads no text.
static void test_companions_of_bytes(void **state) {
    file_text(
        state, "tok/config.json",
        "{\"model_type\": \"gpt2\", \"n_layer\": 1, \"n_embd\": 16, \"n_head\": 2, "
        "\"n_positions\": 16, \"vocab_size\": 500}");
    free(succeed(state, LIST("train", "run.json", "--model", "tok", "--set",
                             "data.format=bytes", "--set", "data.tokenizer=null")));
    assert_same_file(state, "tok/generation_config.json",
                     "out/checkpoints/latest/generation_config.json");
    assert_same_file(state, "tok/tokenizer.json",
                     "out/checkpoints/latest/tokenizer.json");
}

static void test_other_data(void **state) {
    free(succeed(state, LIST("train", "run.json")));
    file_text(state, "docs/b.txt", "the men said that it was greet");
    fail_with(state, NULL, LIST("train", "run.json", "--steps", "5"), 5,
              LIST("was trained on other data"));
    file_text(state, "docs/b.txt", "the men said that it was great");
    free(succeed(state, LIST("train", "run.json", "--steps", "5")));
    fail_with(
        state, NULL,
        LIST("train", "run.json", "--steps", "6", "--set", "data.document_separator= "),
        5, LIST("was trained on other data"));
}

static void test_errors(void **state) {
    write_run(state, "", "");
    fail_with(state, NULL, LIST("train", "run.json"), 2,
              LIST("data.format is \"text\"", "data.tokenizer"));
    fail_with(state, NULL, LIST("train", "run.json", "--set", "data.tokenizer=no"), 5,
              LIST("no: "));
    fail_with(state, NULL, LIST("train", "run.json", "--set", "data.tokenizer=docs"), 5,
              LIST("docs/tokenizer.json"));
    char data[512];
    snprintf(data, sizeof data, ", \"tokenizer\": \"%s\", \"plain_special\": 3", gpt2);
    write_run(state, "", data);
    fail_with(state, NULL, LIST("train", "run.json"), 2,
              LIST("run.json:2: data.plain_special"));
    snprintf(data, sizeof data, ", \"tokenizer\": \"%s\"", gpt2);
    write_run(state, "", data);
    fail_with(state, NULL, LIST("train", "run.json"), 2,
              LIST("data.eos_token: the data are several documents"));
    snprintf(data, sizeof data, ", \"tokenizer\": \"%s\", \"eos_token\": \"x y\"",
             gpt2);
    write_run(state, "", data);
    fail_with(state, NULL, LIST("train", "run.json"), 4,
              LIST("run.json:2: data.eos_token: \"x y\" is no token of"));
    fail_with(state, NULL,
              LIST("train", "run.json", "--set", "data.format=bytes", "--set",
                   "data.eos_token=null"),
              2, LIST("data.tokenizer"));
}

// Where the ids cannot be kept, the message says where they would be.
static void test_no_room(void **state) {
    setting full = {.file_limit = 3000};
    setting nowhere = {.environment = {"XDG_CACHE_HOME=/proc/nothing"}};
    file_words(state, "docs/a.txt", 40000);
    fail_with(state, &full, LIST("train", "run.json"), 5,
              LIST("cache/tranche/text-", "XDG_CACHE_HOME"));
    outcome o = run_with(state, &shell, LIST("-c", "ls cache/tranche"));
    assert_string_equal(o.out, "");
    outcome_free(&o);
    fail_with(state, &nowhere, LIST("train", "run.json"), 5,
              LIST("/proc/nothing", "XDG_CACHE_HOME"));
    free(succeed(state, LIST("train", "run.json")));
}

static const char table[] = "transformer.wte.weight"; // of the tokens

// As many rows of the table of tokens in a folder's newest checkpoint.
static void read_rows(void *const *state, const char *out, int64_t count, float *rows) {
    char name[64];
    tr_error err = {0};
    tr_tensor_set *set = NULL;
    snprintf(name, sizeof name, "%s/checkpoints/latest/model.safetensors", out);
    assert_int_equal(tr__tensor_set_open(file_path(state, name), &set, &err), 0);
    assert_int_equal(tr__tensor_read_f32(set, tr__tensor_set_find(set, table), 0,
                                         count * WIDTH, rows, &err),
                     0);
    tr__tensor_set_close(set);
}

static void assert_config(void *const *state, const char *out, const char *key,
                          int64_t is) {
    char name[64];
    snprintf(name, sizeof name, "%s/checkpoints/latest/config.json", out);
    json_t *config = file_json(state, name);
    assert_int_equal(json_integer_value(json_object_get(config, key)), is);
    json_decref(config);
}

// Gives the tokenizer the tokens from TOKENS up to MORE.
static void add_tokens(void *const *state) {
    static const char added[] = "\"added_tokens\":[";
    static const char more[] =
        "{\"id\":%d,\"content\":\"<|new%d|>\",\"single_word\":false,\"lstrip\":"
        "false,\"rstrip\":false,\"normalized\":false,\"special\":true},";
    size_t bytes;
    char tokens[1024] = "", *text = NULL;
    char *json = file_read(state, "tok/tokenizer.json", &bytes);
    char *at = strstr(json, added);
    assert_non_null(at);
    at += sizeof added - 1;
    for (int id = TOKENS; id < MORE; id++) {
        size_t length = strlen(tokens);
        snprintf(tokens + length, sizeof tokens - length, more, id, id);
    }
    assert_true(asprintf(&text, "%.*s%s%s", (int)(at - json), json, tokens, at) > 0);
    file_text(state, "tok/tokenizer.json", text);
    file_text(state, "docs/b.txt", "the men <|new502|> said");
    free(json);
    free(text);
}

// A model of TOKENS tokens in "out", and in "b" what it is with those of the tokenizer,
// of which there are more. No weight has been trained in between.
static void grow(void *const *state) {
    free(succeed(state, LIST("train", "run.json")));
    add_tokens(state);
    outcome o = run(state, LIST("train", "run.json", "--model", "out", "--out", "b",
                                "--steps", "1", "--set", "optimizer.params.lr=0"));
    if (o.status != 0) {
        fail_msg("%s", o.err);
    }
    assert_says(o.err, "503 tokens in place of 500");
    assert_says(o.err, "new rows of the embedding are drawn");
    outcome_free(&o);
    assert_config(state, "b", "vocab_size", MORE);
}

// A tokenizer with more tokens than the model's vocabulary: the rows that there were
// stay, and the new ones are drawn as all are.
static void test_added_tokens(void **state) {
    float before[TOKENS * WIDTH], after[MORE * WIDTH], drawn[(MORE - TOKENS) * WIDTH];
    grow(state);
    read_rows(state, "out", TOKENS, before);
    read_rows(state, "b", MORE, after);
    assert_memory_equal(before, after, sizeof before);
    tr__fill_normal(drawn, TOKENS * WIDTH, (MORE - TOKENS) * WIDTH, 0, 0.02F, 3,
                    tr__hash_text(table));
    assert_memory_equal(drawn, after + TOKENS * WIDTH, sizeof drawn);
    // The same in slices, each of which draws its part.
    free(succeed(state, LIST("train", "run.json", "--model", "out", "--out", "c",
                             "--steps", "1", "--set", "optimizer.params.lr=0", "--set",
                             "execution.vocabulary_slices=3")));
    assert_same_file(state, "b/checkpoints/latest/model.safetensors",
                     "c/checkpoints/latest/model.safetensors");
    // Evaluations do not make a model larger.
    fail_with(state, NULL,
              LIST("evaluate", "out", "--data", "docs", "--set", "data.tokenizer=tok"),
              4, LIST("data.tokenizer: ", "has a vocabulary of 500"));
}

// Padded first, and then with more tokens in the place of padding.
static void test_added_to_padding(void **state) {
    enum { PADDED = 512 };
    float after[MORE * WIDTH], padded[PADDED * WIDTH];
    static const float zeros[(PADDED - MORE) * WIDTH];
    grow(state);
    read_rows(state, "b", MORE, after);
    free(
        succeed(state, LIST("train", "run.json", "--model", "out", "--out", "d",
                            "--steps", "1", "--set", "optimizer.params.lr=0", "--set",
                            "vocabulary.pad_to_multiple_of=64", "--set",
                            "data.tokenizer=null", "--set", "data.eos_token=<|end|>")));
    free(succeed(state, LIST("train", "run.json", "--model", "d", "--out", "e",
                             "--steps", "1", "--set", "optimizer.params.lr=0")));
    assert_config(state, "e", "vocab_size", PADDED);
    assert_config(state, "e", "unpadded_vocab_size", MORE);
    read_rows(state, "e", PADDED, padded);
    assert_memory_equal(after, padded, sizeof after);
    assert_memory_equal(zeros, padded + MORE * WIDTH, sizeof zeros);
}

// Several processes at once, of which one does the work.
static void test_at_once(void **state) {
    outcome o = run_with(
        state, &shell,
        LIST("-c", "for i in 1 2 3 4; do " TR_PROGRAM " train run.json --out o$i "
                   "--threads 1 >log$i 2>&1 & p=\"$p $!\"; done; "
                   "for q in $p; do wait $q || exit 1; done; cat log* | grep -c "
                   "'train: tokenized '"));
    assert_int_equal(o.status, 0);
    assert_string_equal(o.out, "1\n");
    outcome_free(&o);
    assert_int_equal(cached(state), 1);
    assert_same_file(state, "o1/checkpoints/latest/model.safetensors",
                     "o4/checkpoints/latest/model.safetensors");
}

// A process that is killed in the middle leaves what the next one takes over.
static void test_killed(void **state) {
    file_words(state, "docs/long.txt", 40 << 20);
    outcome o = run_with(state, &shell,
                         LIST("-c", TR_PROGRAM
                              " train run.json >log 2>&1 & p=$!\n"
                              "while ! ls cache/tranche/*.partial 2>/dev/null; do\n"
                              "kill -0 $p || exit 3; sleep 0.01; done\n"
                              "kill -9 $p; wait $p; ls cache/tranche"));
    assert_int_equal(o.status, 0);
    assert_says(o.out, ".partial");
    outcome_free(&o);
    o = run(state, LIST("train", "run.json"));
    assert_int_equal(o.status, 0);
    assert_says(o.err, "tokenized 40.00 MiB");
    outcome_free(&o);
    assert_int_equal(cached(state), 1);
}

// An end is asked for: nothing is left, and nothing was begun.
static void test_interrupted(void **state) {
    file_words(state, "docs/long.txt", 60 << 20);
    outcome o =
        run_with(state, &shell,
                 LIST("-c", TR_PROGRAM
                      " train run.json >log 2>&1 & p=$!\n"
                      "while ! ls cache/tranche/*.partial 2>/dev/null; do\n"
                      "kill -0 $p || exit 3; sleep 0.01; done >/dev/null\n"
                      "kill -TERM $p; wait $p; echo $?; ls cache/tranche; ls out"));
    assert_string_equal(o.out, "143\n");
    outcome_free(&o);
}

static void test_ranks(void **state) {
    if (TR_MPIRUN[0] == '\0') {
        skip();
    }
    static const char *const more[] = {"--set", "zero_optimization.stage=2",
                                       "--threads", "1"};
    free(succeed(state, LIST("train", "run.json", "--out", "one", more[0], more[1],
                             more[2], more[3])));
    assert_int_equal(unlink(file_path(state, "docs/b.txt")), 0);
    file_text(state, "docs/b.txt", "the men said that it was great, and so on");
    outcome o = run_with(state, &shell,
                         LIST(TR_LAUNCH, TR_MPIRUN, "2", TR_PROGRAM, "train",
                              "run.json", more[0], more[1], more[2], more[3]));
    if (o.status != 0) {
        fail_msg("%s%s", o.out, o.err);
    }
    assert_non_null(strstr(o.err, "2 documents"));
    outcome_free(&o);
    assert_int_equal(cached(state), 2);
    copy_tokenizer(state, "same.json");
    assert_same_file(state, "same.json", "out/checkpoints/latest/tokenizer.json");
}

// Without an epoch to count, and with one.
static void test_plan(void **state) {
    free(succeed(state, LIST("plan", "run.json")));
    free(succeed(state,
                 LIST("plan", "run.json", "--set", "steps=null", "--set", "epochs=1")));
}

#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown(name, text_make, folder_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_train_and_sample),
        TEST(test_packed),
        TEST(test_as_tokens),
        TEST(test_companions),
        TEST(test_companions_of_bytes),
        TEST(test_other_data),
        TEST(test_errors),
        TEST(test_added_tokens),
        TEST(test_added_to_padding),
        TEST(test_at_once),
        TEST(test_killed),
        TEST(test_ranks),
        TEST(test_plan),
        TEST(test_no_room),
        TEST(test_interrupted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
