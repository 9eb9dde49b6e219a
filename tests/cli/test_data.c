// Data that cannot be trained on: exit status 4, and where it is wrong.
#include "command.h"
#include "runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void refuse_text(void **state, const char *data, const char *const *words) {
    fail_with(state, NULL, LIST("train", "run.json", "--data", data), 4, words);
}

static void test_text(void **state) {
    run_file(state, text_run, "");
    assert_int_equal(mkdir(file_path(state, "folder"), 0777), 0);
    file_text(state, "empty.txt", "");
    file_text(state, "short.txt", "hello");
    refuse_text(state, "nothere.txt", LIST("nothere.txt: cannot open: No such file"));
    refuse_text(state, "*.nothing", LIST("*.nothing: no file matches"));
    refuse_text(state, "folder", LIST("folder: no files in this folder"));
    refuse_text(state, "empty.txt", LIST("empty.txt: only empty files"));
    refuse_text(state, "short.txt", LIST("5 bytes", "too short", "data.max_length"));
    refuse_text(state, "/dev/null", LIST("/dev/null: is neither a regular file"));
    refuse_text(state, "%n%s", LIST("%n%s: cannot open"));
    fail_with(state, NULL,
              LIST("train", "run.json", "--set", "data.validation=0.00001"), 4,
              LIST("data.validation", "leaves none"));
    file_text(state, "place.json",
              "{\"model\": {\"model_type\": \"gpt2\", \"n_layer\": 1, \"n_embd\": 16, "
              "\"n_head\": 2, \"n_positions\": 16},\n\"train_batch_size\": 4, "
              "\"steps\": 1,\n\"data\": {\"train\": \"text.txt\",\n"
              "\"validation\": 0.00001}}");
    fail_with(state, NULL, LIST("train", "place.json"), 4,
              LIST("place.json:4: data.validation: a fraction of 1e-05 of"));
    file_text(state, "run.json", "{\"train_batch_size\": 4, \"steps\": 1}");
    fail_with(state, NULL, LIST("train", "run.json", "--model", "gpt2"), 2,
              LIST("there is no training data", "--data PATH"));
}

// Found while reading, not while opening: the run ends with the place.
static void test_vocabulary(void **state) {
    uint16_t ids[400] = {0};
    for (int i = 0; i < 400; i++) {
        ids[i] = (uint16_t)(i == 123 ? 300 : i % 7);
    }
    run_file(state, text_run, "");
    file_write(state, "ids.bin", ids, sizeof ids);
    fail_with(state, NULL,
              LIST("train", "run.json", "--data", "ids.bin", "--set",
                   "data.format=tokens", "--set", "data.validation=null", "--set",
                   "model.vocab_size=256"),
              4,
              LIST("ids.bin: token 300 at position 123", "vocabulary of 256",
                   "raise model.vocab_size to at least 301"));
    fail_with(state, NULL, LIST("train", "run.json", "--set", "model.vocab_size=100"),
              4, LIST("text.txt: byte", "outside the vocabulary of 100"));
}

static void refuse_csv(void **state, const char *text, const char *const *words) {
    file_text(state, "data.csv", text);
    fail_with(state, NULL, LIST("train", "run.json"), 4, words);
}

static void test_csv(void **state) {
    file_text(
        state, "run.json",
        "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [2, 4, 3]}, "
        "\"data\": {\"format\": \"csv\", \"train\": \"data.csv\"}, \"epochs\": 1, "
        "\"train_batch_size\": 2}");
    refuse_csv(state, "1,2,0\n1,nan,1\n", LIST("data.csv:2:2: 'nan'", "finite"));
    refuse_csv(state, "1,2,0\n1e99,2,1\n", LIST("data.csv:2:1: '1e99'", "finite"));
    refuse_csv(state, "1,2,0\n1,x,1\n", LIST("data.csv:2:2: 'x' is not a number"));
    refuse_csv(state, "1,2,0\n1,2\n", LIST("data.csv:2: 2 columns", "first row has 3"));
    refuse_csv(state, "1,2,0\n1,2,-1\n", LIST("data.csv:2:3: '-1' is no label"));
    refuse_csv(state, "1,2,0\n1,2,0.5\n", LIST("data.csv:2:3: '0.5'", "whole number"));
    refuse_csv(state, "1,2,0\n1,2,7\n",
               LIST("2 rows of csv", "8 classes, the model 3"));
    refuse_csv(state, "1,2,3,0\n", LIST("3 values a sample, the model takes 2"));
    refuse_csv(state, "", LIST("no rows"));
    refuse_csv(state, "a,b,c\n", LIST("no rows"));
    file_text(state, "data.csv", "1,2,0\n3,4,2\n5,6,1\n");
    fail_with(state, NULL,
              LIST("train", "run.json", "--set", "data.label_column=color"), 4,
              LIST("no column 'color'", "0 to 2"));
    fail_with(state, NULL, LIST("train", "run.json", "--set", "data.classes=2"), 4,
              LIST("data.csv:2:3: '2' is no label in [0, 2)"));
    fail_with(state, NULL, LIST("train", "run.json", "--set", "data.dtype=u16"), 2,
              LIST("data.dtype", "data.format is \"csv\""));
    free(succeed(state, LIST("train", "run.json")));
}

static void test_npy(void **state) {
    file_text(state, "run.json",
              "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [2, 4, 3]}, "
              "\"data\": {\"format\": \"npy\", \"train\": \"x.npy\", \"labels\": "
              "\"y.npy\"}, \"epochs\": 1, \"train_batch_size\": 2}");
    file_text(state, "x.npy", "no array");
    file_text(state, "y.npy", "\x93NUMPY");
    fail_with(state, NULL, LIST("train", "run.json"), 4, LIST("x.npy", ".npy"));
    fail_with(state, NULL, LIST("inspect", "y.npy"), 4, LIST("y.npy"));
    fail_with(state, NULL, LIST("train", "run.json", "--set", "data.labels=null"), 2,
              LIST("data.labels", "needs a file"));
}

// A pipe that nobody writes to holds nobody up, whatever it is given as.
static void test_pipes(void **state) {
    assert_int_equal(mkfifo(file_path(state, "pipe"), 0600), 0);
    assert_int_equal(mkfifo(file_path(state, "x.npy"), 0600), 0);
    file_text(state, "run.json",
              "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [2, 4, 3]}, "
              "\"data\": {\"format\": \"npy\", \"train\": \"x.npy\", \"labels\": "
              "\"pipe\"}, \"epochs\": 1, \"train_batch_size\": 2}");
    fail_with(state, NULL, LIST("train", "run.json"), 4,
              LIST("x.npy: not a regular file"));
    fail_with(state, NULL, LIST("inspect", "pipe"), 4, LIST("pipe: is neither"));
    fail_with(state, NULL, LIST("inspect", "x.npy"), 4, LIST("x.npy: is neither"));
    run_file(state, text_run, "");
    fail_with(state, NULL, LIST("plan", "run.json", "--model", "pipe"), 5,
              LIST("pipe: not a regular file"));
    fail_with(state, NULL, LIST("train", "pipe"), 2, LIST("pipe: not a regular file"));
}

// An out folder among the data: what the run writes is none of it, or the run could
// never go on.
static void test_out_among_data(void **state) {
    run_file(state, text_run, "");
    assert_int_equal(mkdir(file_path(state, "all"), 0777), 0);
    file_words(state, "all/words.txt", 3000);
    static const char *const data[] = {"all", "all/*"};
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "all/b" : "all/a";
        free(succeed(state, LIST("train", "run.json", "--data", data[i], "--out", name,
                                 "--steps", "2")));
        outcome o =
            run(state, LIST("train", "run.json", "--data", data[i], "--out", name));
        assert_int_equal(o.status, 0);
        assert_says(o.err, "(step 2)");
        assert_says(o.out, "step 6/6");
        outcome_free(&o);
    }
}

// A sample that only reading it shows to be wrong: the steps before it are kept.
static void test_bad_sample(void **state) {
    bad_sample_run(state, 30);
    outcome o = run(state, LIST("train", "run.json"));
    assert_int_equal(o.status, 4);
    assert_says(o.err, "x.npy: feature 1 of sample 30 is not a finite f32 number");
    assert_says(o.out, "checkpoint of step 7 saved before the run ends");
    outcome_free(&o);
    json_t *found = succeed_json(state, LIST("inspect", "out", "--json"));
    const json_t *step = json_object_get(json_object_get(found, "state"), "step");
    assert_int_equal(json_integer_value(step), 7);
    json_decref(found);
    bad_sample_run(state, 1); // nothing is learned before the first step
    o = run(state, LIST("train", "run.json", "--out", "b"));
    assert_int_equal(o.status, 4);
    assert_null(strstr(o.out, "checkpoint"));
    assert_int_not_equal(access(file_path(state, "b/checkpoints"), F_OK), 0);
    outcome_free(&o);
}

// The model and the data are of two worlds.
static void test_wrong_kind(void **state) {
    run_file(state, classifier_run, "");
    fail_with(state, NULL, LIST("train", "run.json", "--model", "gpt2"), 2,
              LIST("(random) is features", "takes tokens",
                   "\"bytes\", \"text\", \"tokens\" or"));
    fail_with(state, NULL,
              LIST("train", "run.json", "--set", "model.layer_sizes=[5, 3]"), 4,
              LIST("6 values a sample, the model takes 5", "first layer"));
    fail_with(state, NULL,
              LIST("train", "run.json", "--set", "model.layer_sizes=[6, 2]"), 4,
              LIST("3 classes, the model 2", "last layer"));
    fail_with(state, NULL, LIST("train", "run.json", "--set", "data.samples=null"), 2,
              LIST("data.samples", "at least 1"));
    fail_with(state, NULL, LIST("train", "run.json", "--data", "x.txt"), 2,
              LIST("command line: data.train", "data.format is \"random\""));
    run_file(state, text_run, "");
    fail_with(state, NULL,
              LIST("train", "run.json", "--set",
                   "model={\"model_type\": \"mlp\", \"layer_sizes\": [2, 2]}"),
              2, LIST("(bytes) is tokens", "takes features", "\"csv\" or \"npy\""));
}

// Nothing is left of a run that could not begin.
static void test_no_traces(void **state) {
    run_file(state, text_run, "");
    refuse_text(state, "nothere.txt", LIST("nothere.txt"));
    assert_int_not_equal(access(file_path(state, "out"), F_OK), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_text),       TEST(test_vocabulary), TEST(test_csv),
        TEST(test_npy),        TEST(test_pipes),      TEST(test_out_among_data),
        TEST(test_bad_sample), TEST(test_wrong_kind), TEST(test_no_traces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
