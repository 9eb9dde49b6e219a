// Where the run file's paths are looked for, and what a plan makes of data that is not
// there.
#include "command.h"
#include "runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// run.json and its data in a folder below the current one.
static void write_project(void **state, const char *data) {
    char text[1024];
    snprintf(text, sizeof text,
             "{\"model\": {\"model_type\": \"gpt2\", \"n_layer\": 1, \"n_embd\": 16, "
             "\"n_head\": 2, \"n_positions\": 16}, \"data\": {\"train\": %s}, "
             "\"steps\": 1, \"train_batch_size\": 2}",
             data);
    assert_int_equal(mkdir(file_path(state, "project"), 0777), 0);
    file_text(state, "project/run.json", text);
    file_words(state, "project/corpus.txt", 2000);
    file_words(state, "project/more.txt", 1000);
}

static void test_beside_the_run_file(void **state) {
    write_project(state, "[\"corpus.txt\", \"mo*.txt\"]");
    outcome o = run(state, LIST("train", "project/run.json"));
    assert_int_equal(o.status, 0);
    assert_says(o.err, "data.train: corpus.txt is not in the current folder; taken is "
                       "project/corpus.txt, beside the run file");
    assert_says(o.err, "taken is project/mo*.txt");
    assert_says(o.err, "2 files, 2.93 KiB");
    outcome_free(&o);
    // What is in the current folder comes first. run.json says what was taken.
    assert_int_not_equal(access(file_path(state, "out/run.json"), F_OK), -1);
    char *resolved = file_read(state, "out/run.json", NULL);
    assert_says(resolved, "project/corpus.txt");
    free(resolved);
    file_words(state, "corpus.txt", 500);
    file_words(state, "mode.txt", 500);
    o = run(state, LIST("train", "project/run.json", "--out", "b"));
    assert_int_equal(o.status, 0);
    assert_null(strstr(o.err, "beside the run file"));
    assert_says(o.err, "2 files, 1000 B");
    outcome_free(&o);
    // What the command line names is named from the current folder.
    fail_with(state, NULL, LIST("train", "project/run.json", "--data", "more.txt"), 4,
              LIST("more.txt: cannot open"));
}

static void test_model_beside(void **state) {
    write_project(state, "\"corpus.txt\"");
    file_text(
        state, "project/small.json",
        "{\"model_type\": \"gpt2\", \"n_layer\": 1, \"n_embd\": 8, \"n_head\": 1, "
        "\"n_positions\": 8, \"vocab_size\": 256}");
    file_text(state, "project/other.json",
              "{\"model\": \"small.json\", \"data\": {\"train\": \"corpus.txt\"}, "
              "\"steps\": 1, \"train_batch_size\": 2}");
    outcome o = run(state, LIST("train", "project/other.json"));
    assert_int_equal(o.status, 0);
    assert_says(o.err, "model: small.json is not in the current folder; taken is "
                       "project/small.json");
    outcome_free(&o);
}

// A plan needs no data, but where epochs are counted in its samples.
static void test_plan_without_data(void **state) {
    run_file(state, text_run, "");
    assert_int_equal(remove(file_path(state, "text.txt")), 0);
    outcome o = run(state, LIST("plan", "run.json"));
    assert_int_equal(o.status, 0);
    assert_says(o.err, "text.txt: not found; the plan is made without the data");
    outcome_free(&o);
    fail_with(state, NULL,
              LIST("plan", "run.json", "--set", "steps=null", "--set", "epochs=2"), 4,
              LIST("text.txt: not found, and \"epochs\" is counted in the samples"));
    fail_with(state, NULL, LIST("train", "run.json"), 4, LIST("text.txt: cannot open"));
    static const char machine[] = TR_SOURCE_DIR "/examples/machines/dgx-a100.json";
    o = run(state, LIST("simulate", "run.json", "--machine", machine));
    assert_int_equal(o.status, 0);
    assert_says(o.err, "text.txt: not found");
    outcome_free(&o);
    // What is there must be right.
    file_text(state, "text.txt", "short");
    fail_with(state, NULL, LIST("plan", "run.json"), 4, LIST("too short"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_beside_the_run_file),
        TEST(test_model_beside),
        TEST(test_plan_without_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
