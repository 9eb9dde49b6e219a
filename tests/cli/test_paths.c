// Where the run file's paths and models are looked for, and what a plan makes of data
// that is not there.
#include "command.h"
#include "runs.h"

#include "base/files.h"

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

// ---- names on Hugging Face's hub

static const char initial[] = TR_TEST_DATA "/goldens/gpt2/initial";

static void make_folders(void *const *state, const char *path) {
    tr_error err = {0};
    assert_int_equal(tr__folder_create(file_path(state, path), &err), TR_OK);
}

static void link_file(void *const *state, const char *folder, const char *name) {
    char target[1024], path[1024];
    snprintf(target, sizeof target, "%s/%s", initial, name);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(symlink(target, file_path(state, path)), 0);
}

// <cache>/models--acme--small-1.5, as huggingface_hub lays it out.
static void make_cache(void *const *state, const char *cache, const char *commit) {
    char path[256];
    snprintf(path, sizeof path, "%s/models--acme--small-1.5/refs", cache);
    make_folders(state, path);
    strcat(path, "/main");
    file_text(state, path, commit);
    snprintf(path, sizeof path, "%s/models--acme--small-1.5/snapshots/0a1b2c", cache);
    make_folders(state, path);
    link_file(state, path, "config.json");
    link_file(state, path, "model.safetensors");
}

// The program with one variable of the cache's place.
static setting with_cache(void *const *state, const char *name, const char *value) {
    static char text[8][1200];
    static int next;
    char *own = text[next++ % 8], *home = text[next++ % 8];
    snprintf(own, sizeof text[0], "%s=%s", name, file_path(state, value));
    snprintf(home, sizeof text[0], "HOME=%s", file_path(state, "nobody"));
    bool is_placement = strcmp(name, "HOME") == 0;
    return (setting){.environment = {"HF_HOME=", "HF_HUB_CACHE=", "XDG_CACHE_HOME=",
                                     is_placement ? own : home, own}};
}

static const char hub_run[] =
    "{\"model\": \"acme/small-1.5\", \"data\": {\"format\": \"tokens\", \"train\": "
    "\"" TR_TEST_DATA "/goldens/gpt2/tokens.u16\"}, \"steps\": 1, "
    "\"train_batch_size\": 2, \"out\": \"out\"}";

static void check_found(void *const *state, const setting *where) {
    outcome o = run_with(state, where, LIST("plan", "run.json"));
    if (o.status != 0) {
        fail_msg("%s%s", o.out, o.err);
    }
    outcome_free(&o);
}

static void test_hub_name(void **state) {
    file_text(state, "run.json", hub_run);
    make_cache(state, "hub", "0a1b2c\n");
    make_cache(state, "hf/hub", "0a1b2c");
    make_cache(state, "xdg/huggingface/hub", "0a1b2c");
    make_cache(state, "home/.cache/huggingface/hub", "0a1b2c");
    setting cache = with_cache(state, "HF_HUB_CACHE", "hub");
    check_found(state, &cache);
    setting home = with_cache(state, "HOME", "home");
    check_found(state, &home);
    setting hf = with_cache(state, "HF_HOME", "hf");
    check_found(state, &hf);
    setting xdg = with_cache(state, "XDG_CACHE_HOME", "xdg");
    check_found(state, &xdg);
    // It starts from the weights there, and run.json says where that is.
    outcome o = run_with(state, &cache, LIST("train", "run.json"));
    assert_int_equal(o.status, 0);
    assert_says(o.err, "models--acme--small-1.5/snapshots/0a1b2c");
    outcome_free(&o);
    char *resolved = file_read(state, "out/run.json", NULL);
    assert_says(resolved, "hub/models--acme--small-1.5/snapshots/0a1b2c\"");
    free(resolved);
    // Every command takes the name.
    const char *const *const commands[] = {
        LIST("inspect", "acme/small-1.5"), LIST("diff", "acme/small-1.5", initial),
        LIST("sample", "acme/small-1.5", "--prompt", "1 2", "--tokens", "2")};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        o = run_with(state, &cache, commands[i]);
        assert_int_equal(o.status, 0);
        outcome_free(&o);
    }
}

static void test_hub_name_not_there(void **state) {
    static const char *const hostile[] = {
        "../../../outside", "/etc", "..", ".", "a/b", "", "0a1b2c/"};
    setting cache = with_cache(state, "HF_HUB_CACHE", "hub");
    file_text(state, "run.json", hub_run);
    fail_with(state, &cache, LIST("train", "run.json"), 2,
              LIST("acme/small-1.5", "hf download acme/small-1.5"));
    fail_with(state, &cache, LIST("inspect", "acme/other"), 5,
              LIST("no such file or folder", "hf download acme/other"));
    make_cache(state, "hub", "0a1b2c");
    make_folders(state, "outside");
    link_file(state, "outside", "config.json");
    link_file(state, "outside", "model.safetensors");
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        file_text(state, "hub/models--acme--small-1.5/refs/main", hostile[i]);
        fail_with(state, &cache, LIST("train", "run.json"), 2,
                  LIST("refs/main is not the name of a commit", "hf download acme/"));
    }
    // Half of a model is none: training would start from new weights.
    file_text(state, "hub/models--acme--small-1.5/refs/main", "0a1b2c");
    assert_int_equal(
        remove(file_path(
            state, "hub/models--acme--small-1.5/snapshots/0a1b2c/model.safetensors")),
        0);
    fail_with(state, &cache, LIST("train", "run.json"), 2,
              LIST("no model.safetensors", "hf download acme/small-1.5"));
    // What is no name there.
    fail_with(state, &cache, LIST("plan", "run.json", "--model", "a/b/c"), 2,
              LIST("\"a/b/c\" is not a file, a folder or a known name"));
    fail_with(state, &cache, LIST("plan", "run.json", "--model", "./b"), 2,
              LIST("\"./b\" is not a file, a folder or a known name"));
    fail_with(state, &cache, LIST("plan", "run.json", "--model", "acme/.."), 2,
              LIST("\"acme/..\" is not a file, a folder or a known name"));
}

// A tokenizer by the name of its model: in run files and by --tokenizer. Only its own
// files have to be there.
static void test_hub_tokenizer(void **state) {
    static const char snapshot[] = "hub/models--acme--small-1.5/snapshots/0a1b2c";
    setting cache = with_cache(state, "HF_HUB_CACHE", "hub");
    run_file(state, text_run, "");
    const char *const train[] = {"train", "run.json",
                                 "--set", "data.format=text",
                                 "--set", "data.tokenizer=acme/small-1.5",
                                 NULL};
    const char *const tokenize[] = {"tokenize", "--tokenizer", "acme/small-1.5",
                                    "text.txt", NULL};
    fail_with(state, &cache, train, 5,
              LIST("acme/small-1.5", "hf download acme/small-1.5"));
    fail_with(state, &cache, tokenize, 5, LIST("hf download acme/small-1.5"));
    fail_with(state, &cache,
              LIST("tokenize", "--tokenizer", "acme/tokenizer.json", "text.txt"), 5,
              LIST("acme/tokenizer.json: cannot open"));
    make_folders(state, "hub/models--acme--small-1.5/refs");
    file_text(state, "hub/models--acme--small-1.5/refs/main", "0a1b2c");
    make_folders(state, snapshot);
    fail_with(state, &cache, tokenize, 2,
              LIST("has no tokenizer.json", "hf download acme/small-1.5"));
    char path[256];
    snprintf(path, sizeof path, "%s/tokenizer.json", snapshot);
    assert_int_equal(symlink(gpt2_tokenizer, file_path(state, path)), 0);
    outcome o = run_with(state, &cache, tokenize);
    assert_int_equal(o.status, 0);
    assert_says(o.out, "2068 tokens");
    outcome_free(&o);
    o = run_with(state, &cache, train);
    assert_int_equal(o.status, 0);
    outcome_free(&o);
    char *resolved = file_read(state, "out/run.json", NULL);
    assert_says(resolved, "models--acme--small-1.5/snapshots/0a1b2c\"");
    free(resolved);
    // The checkpoint has the tokenizer; so nobody asks the cache for it any more.
    assert_int_equal(
        access(file_path(state, "out/checkpoints/latest/tokenizer.json"), F_OK), 0);
    o = run_with(state, &cache,
                 LIST("sample", "out", "--tokenizer", "acme/small-1.5", "--prompt",
                      "the", "--tokens", "3"));
    assert_int_equal(o.status, 0);
    outcome_free(&o);
}

// A folder of that name comes first.
static void test_folder_before_hub(void **state) {
    setting cache = with_cache(state, "HF_HUB_CACHE", "hub");
    file_text(state, "run.json", hub_run);
    make_cache(state, "hub", "nowhere");
    make_folders(state, "acme/small-1.5");
    link_file(state, "acme/small-1.5", "config.json");
    link_file(state, "acme/small-1.5", "model.safetensors");
    outcome o = run_with(state, &cache, LIST("train", "run.json"));
    assert_int_equal(o.status, 0);
    assert_says(o.err, "from acme/small-1.5");
    outcome_free(&o);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_beside_the_run_file), TEST(test_model_beside),
        TEST(test_plan_without_data),   TEST(test_hub_name),
        TEST(test_hub_name_not_there),  TEST(test_folder_before_hub),
        TEST(test_hub_tokenizer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
