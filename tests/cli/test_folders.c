// Out folders that cannot be written and models that cannot be read: exit status 5, a
// message with the path, and nothing lost.
#include "command.h"
#include "runs.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static void test_unusable_out(void **state) {
    run_file(state, classifier_run, "");
    file_text(state, "file", "text");
    fail_with(state, NULL, LIST("train", "run.json", "--out", "file"), 5,
              LIST("file: is not a folder"));
    fail_with(state, NULL, LIST("train", "run.json", "--out", "file/below"), 5,
              LIST("file/below: cannot create folder"));
    fail_with(state, NULL, LIST("train", "run.json", "--out", "/proc/tranche"), 5,
              LIST("/proc/tranche: cannot create folder"));
    fail_with(state, NULL, LIST("train", "run.json", "--out", ""), 5,
              LIST("not a usable folder name"));
    char *text = file_read(state, "file", NULL);
    assert_string_equal(text, "text");
    free(text);
}

// A file system of its own for one test; false: not permitted here.
static bool mount_small(void *const *state, const char *name, const char *options) {
    const char *path = file_path(state, name);
    assert_int_equal(mkdir(path, 0777), 0);
    return unshare(CLONE_NEWNS) == 0 &&
           mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("tranche-test", path, "tmpfs", 0, options) == 0;
}

static void unmount(void *const *state, const char *name) {
    assert_int_equal(umount2(file_path(state, name), MNT_DETACH), 0);
}

static void test_read_only_out(void **state) {
    run_file(state, classifier_run, "");
    if (!mount_small(state, "small", "size=1m")) {
        print_message("a file system of its own may not be mounted here\n");
        skip();
    }
    free(succeed(state, LIST("train", "run.json", "--out", "small/out")));
    assert_int_equal(
        mount(NULL, file_path(state, "small"), NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
    fail_with(state, NULL, LIST("train", "run.json", "--out", "small/new"), 5,
              LIST("small/new: cannot create folder: Read-only file system"));
    fail_with(state, NULL,
              LIST("train", "run.json", "--out", "small/out", "--set", "epochs=3"), 5,
              LIST("small/out/", "Read-only file system"));
    free(succeed(state, LIST("inspect", "small/out")));
    unmount(state, "small");
}

// Before the first step, and with what would help.
static void test_no_room(void **state) {
    run_file(state, classifier_run, "");
    if (!mount_small(state, "small", "size=300k")) {
        print_message("a file system of its own may not be mounted here\n");
        skip();
    }
    const char *large = "model.layer_sizes=[6,3000,3]"; // 30,003 values, 3 times
    fail_with(state, NULL,
              LIST("train", "run.json", "--out", "small/out", "--set", large), 5,
              LIST("small/out: needs ", "3 more checkpoints of ", "and has ",
                   "checkpoint.keep"));
    unmount(state, "small");
}

// The text run to its end, in one go, as `out`.
static void train_whole(void **state, const char *out) {
    free(succeed(state, LIST("train", "run.json", "--out", out)));
}

// What is in `out` is step `step`, and the run can be finished from there, to the bit.
static void check_goes_on(void **state, const char *out, int step) {
    char words[32];
    json_t *found = succeed_json(state, LIST("inspect", out, "--json"));
    const json_t *inner = json_object_get(found, "state");
    assert_int_equal(json_integer_value(json_object_get(inner, "step")), step);
    json_decref(found);
    outcome o = run(state, LIST("train", "run.json", "--out", out));
    snprintf(words, sizeof words, "(step %d)", step);
    assert_says(o.err, words);
    assert_int_equal(o.status, 0);
    outcome_free(&o);
    free(succeed(state, LIST("diff", out, "whole")));
}

// A file-size limit is met as an error, not as a signal's death.
static void test_file_limit(void **state) {
    static const setting limited = {.file_limit = 30000};
    run_file(state, text_run, "");
    train_whole(state, "whole");
    free(succeed(state, LIST("train", "run.json", "--steps", "2")));
    fail_with(state, &limited, LIST("train", "run.json"), 5,
              LIST("out/checkpoints/step-00000006", "File too large"));
    check_goes_on(state, "out", 2);
}

// The tensors alone would fit, the rest beside them does not: that is found on the way,
// and the run goes on to its end without further checkpoints.
static void test_full_out(void **state) {
    run_file(state, text_run, ", \"checkpoint\": {\"every\": 1, \"keep\": 2}");
    train_whole(state, "whole");
    if (!mount_small(state, "small", "size=404k")) {
        print_message("a file system of its own may not be mounted here\n");
        skip();
    }
    fail_with(state, NULL, LIST("train", "run.json", "--out", "small/out"), 5,
              LIST("small/out/", "No space left on device"));
    json_t *found = succeed_json(state, LIST("inspect", "small/out", "--json"));
    const json_t *inner = json_object_get(found, "state");
    int step = (int)json_integer_value(json_object_get(inner, "step"));
    json_decref(found);
    assert_in_range(step, 1, 5);
    // More room, and on it goes.
    assert_int_equal(
        mount(NULL, file_path(state, "small"), NULL, MS_REMOUNT, "size=8m"), 0);
    check_goes_on(state, "small/out", step);
    unmount(state, "small");
}

// Two runs in one folder would mix their metrics, and take each other's checkpoints.
static void test_second_run(void **state) {
    run_file(state, classifier_run, "");
    free(succeed(state, LIST("train", "run.json", "--steps", "3")));
    int first = open(file_path(state, "out"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(flock(first, LOCK_EX | LOCK_NB), 0); // as a run does
    char *before = file_read(state, "out/metrics.jsonl", NULL);
    fail_with(state, NULL, LIST("train", "run.json"), 5,
              LIST("out: another run is at work in this folder", "--out"));
    fail_with(state, NULL, LIST("train", "run.json", "--resume", "never"), 5,
              LIST("out: another run is at work"));
    char *after = file_read(state, "out/metrics.jsonl", NULL);
    assert_string_equal(before, after);
    free(before);
    free(after);
    // Looking is free, and so is the folder when the run is over.
    free(succeed(state, LIST("inspect", "out")));
    close(first);
    free(succeed(state, LIST("train", "run.json")));
}

// ---- checkpoints of other runs

static void refuse_resume(void **state, const char *const *arguments,
                          const char *const *words) {
    static const char *const names[] = {"out/run.json", "out/plan.txt",
                                        "out/metrics.jsonl"};
    char *before[3], *after;
    for (int i = 0; i < 3; i++) {
        before[i] = file_read(state, names[i], NULL);
    }
    fail_with(state, NULL, arguments, 5, words);
    for (int i = 0; i < 3; i++) {
        after = file_read(state, names[i], NULL);
        assert_string_equal(before[i], after);
        free(before[i]);
        free(after);
    }
}

static void test_other_runs(void **state) {
    run_file(state, classifier_run, "");
    free(succeed(state, LIST("train", "run.json")));
    refuse_resume(
        state, LIST("train", "run.json", "--set", "model.layer_sizes=[6, 8, 3]"),
        LIST("out/checkpoints/step-00000008: is a checkpoint of another model",
             "another \"out\" folder", "--resume never"));
    refuse_resume(state, LIST("train", "run.json", "--set", "data.samples=21"),
                  LIST("out/checkpoints/step-00000008: was trained on other data"));
    refuse_resume(state, LIST("train", "run.json", "--set", "seed=2"),
                  LIST("out/checkpoints/step-00000008: was trained"));
    refuse_resume(
        state,
        LIST("train", "run.json", "--set",
             "optimizer={\"type\": \"SGD\", \"params\": {\"momentum\": 0.9}}"),
        LIST("another optimizer", "sgd"));
    refuse_resume(state,
                  LIST("train", "run.json", "--set",
                       "optimizer.groups=[{\"match\": \"*\", \"lr\": 1}]"),
                  LIST("optimizer.groups"));
    run_file(state, text_run, "");
    free(succeed(state, LIST("train", "run.json", "--out", "text")));
    fail_with(state, NULL,
              LIST("train", "run.json", "--out", "text", "--set", "seed=4"), 5,
              LIST("seed 3", "seed 4"));
}

static void test_resume(void **state) {
    run_file(state, classifier_run, "");
    free(succeed(state, LIST("train", "run.json", "--out", "whole")));
    free(succeed(state, LIST("train", "run.json", "--steps", "3")));
    fail_with(state, NULL, LIST("train", "run.json", "--resume", "nothere"), 2,
              LIST("--resume nothere: no such folder"));
    assert_int_equal(mkdir(file_path(state, "empty"), 0777), 0);
    fail_with(state, NULL, LIST("train", "run.json", "--resume", "empty"), 5,
              LIST("empty: no model.safetensors"));
    // A checkpoint, or the out folder that has it.
    free(succeed(state, LIST("train", "run.json", "--out", "a", "--resume",
                             "out/checkpoints/step-00000003")));
    free(succeed(state, LIST("train", "run.json", "--out", "b", "--resume", "out")));
    free(succeed(
        state, LIST("train", "run.json", "--out", "c", "--resume", "out/checkpoints")));
    free(succeed(state, LIST("diff", "a", "whole")));
    free(succeed(state, LIST("diff", "b", "whole")));
    free(succeed(state, LIST("diff", "c/checkpoints", "whole")));
    char *found = succeed(state, LIST("inspect", "c/checkpoints"));
    assert_says(found, "c/checkpoints/step-00000008\ncheckpoint  step 8");
    free(found);
    char *text =
        succeed(state, LIST("train", "run.json", "--out", "a", "--resume", "never"));
    assert_says(text, "step 1/8");
    free(text);
    text = succeed(state, LIST("train", "run.json", "--out", "a"));
    assert_says(text, "step 8 of 8: this run is complete");
    free(text);
}

// One byte of a file turned over.
static void damage(void *const *state, const char *name) {
    size_t bytes = 0;
    char *text = file_read(state, name, &bytes);
    text[bytes - 5] ^= 1;
    file_write(state, name, text, bytes);
    free(text);
}

static void test_damaged_checkpoint(void **state) {
    run_file(state, classifier_run, ", \"checkpoint\": {\"every\": 2}");
    free(succeed(state, LIST("train", "run.json", "--steps", "4")));
    damage(state, "out/checkpoints/step-00000004/model.safetensors");
    refuse_resume(
        state, LIST("train", "run.json"),
        LIST("out/checkpoints/step-00000004/model.safetensors", "step-00000002"));
    // The one before is as good as ever.
    free(succeed(
        state, LIST("train", "run.json", "--resume", "out/checkpoints/step-00000002")));
    file_text(state, "out/checkpoints/step-00000008/state.json", "{");
    refuse_resume(state, LIST("train", "run.json"), LIST("step-00000008/state.json"));
}

// ---- models from files

static const char config[] =
    "{\"model_type\": \"gpt2\", \"n_layer\": 1, \"n_embd\": 4, \"n_head\": 2, "
    "\"n_positions\": 16, \"vocab_size\": 256}";

static void write_model(void *const *state, uint64_t header, const char *text,
                        size_t data) {
    char all[2048] = "";
    size_t length = strlen(text);
    for (int i = 0; i < 8; i++) {
        all[i] = (char)(header >> (8 * i));
    }
    memcpy(all + 8, text, length);
    file_write(state, "model/model.safetensors", all, 8 + length + data);
}

static void test_hostile_model(void **state) {
    static const struct {
        uint64_t header; // 0: as long as the text
        const char *text;
        size_t data;
        const char *words;
    } all[] = {
        {UINT64_MAX, "{}", 0, "cut short"},
        {1 << 20, "{}", 0, "cut short"},
        {0, "{}", 0, "has no tensor"},
        {0, "[]", 0, "model.safetensors"},
        {0, "%n%s{", 0, "model.safetensors"},
        {0, "{\"w\": {\"dtype\": \"F32\", \"shape\": [2], \"data_offsets\": [0, 9]}}",
         9, "w"},
        {0, "{\"w\": {\"dtype\": \"F32\", \"shape\": [2], \"data_offsets\": [8, 0]}}",
         8, "w"},
        {0, "{\"w\": {\"dtype\": \"F32\", \"shape\": [2], \"data_offsets\": [0, 8]}}",
         4, "model.safetensors"},
        {0, "{\"w\": {\"dtype\": \"Q7\", \"shape\": [2], \"data_offsets\": [0, 8]}}", 8,
         "Q7"},
        {0,
         "{\"w\": {\"dtype\": \"F32\", \"shape\": [4611686018427387904, 4], "
         "\"data_offsets\": [0, 8]}}",
         8, "w"},
        {0,
         "{\"transformer.wte.weight\": {\"dtype\": \"F32\", \"shape\": [2], "
         "\"data_offsets\": [0, 8]}}",
         8, "transformer.wte.weight"},
    };
    run_file(state, text_run, "");
    assert_int_equal(mkdir(file_path(state, "model"), 0777), 0);
    file_text(state, "model/config.json", config);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        uint64_t header = all[i].header ? all[i].header : strlen(all[i].text);
        write_model(state, header, all[i].text, all[i].data);
        fail_with(state, NULL, LIST("train", "run.json", "--model", "model"), 5,
                  LIST("model", all[i].words));
    }
}

static void test_model_folder(void **state) {
    run_file(state, text_run, "");
    free(succeed(state, LIST("train", "run.json")));
    // What was trained is a model to begin with.
    outcome o =
        run(state, LIST("train", "run.json", "--model", "out", "--out", "next"));
    assert_int_equal(o.status, 0);
    assert_says(o.err, "from out/checkpoints/step-00000006");
    assert_says(o.err, "dropout: residual 0.1, embedding 0.1, attention 0.1");
    outcome_free(&o);
    size_t bytes = 0;
    char *text =
        file_read(state, "out/checkpoints/step-00000006/model.safetensors", &bytes);
    assert_int_equal(mkdir(file_path(state, "model"), 0777), 0);
    file_write(state, "model/model.safetensors", text, bytes - 1);
    free(text);
    fail_with(state, NULL, LIST("train", "run.json", "--model", "model"), 5,
              LIST("model/config.json"));
    text = file_read(state, "out/checkpoints/step-00000006/config.json", &bytes);
    file_write(state, "model/config.json", text, bytes);
    free(text);
    fail_with(state, NULL,
              LIST("train", "run.json", "--model", "model", "--out", "last"), 5,
              LIST("model/model.safetensors"));
    fail_with(state, NULL, LIST("inspect", "model"), 5,
              LIST("model/model.safetensors"));
    fail_with(state, NULL, LIST("sample", "model"), 5, LIST("model/model.safetensors"));
    fail_with(state, NULL, LIST("diff", "model", "out"), 5,
              LIST("model/model.safetensors"));
}

// A folder "other": the weights of out's checkpoint, its config with one key changed.
static void change_config(void *const *state, const char *key, int value) {
    json_t *keys = file_json(state, "out/checkpoints/latest/config.json");
    assert_int_equal(json_object_set_new(keys, key, json_integer(value)), 0);
    char *text = json_dumps(keys, 0);
    file_text(state, "other/config.json", text);
    free(text);
    json_decref(keys);
}

// A config that says another model than the files hold.
static void test_other_config(void **state) {
    run_file(state, text_run, "");
    free(succeed(state, LIST("train", "run.json", "--steps", "1")));
    assert_int_equal(mkdir(file_path(state, "other"), 0777), 0);
    assert_int_equal(symlink("../out/checkpoints/latest/model.safetensors",
                             file_path(state, "other/model.safetensors")),
                     0);
    change_config(state, "n_layer", 1);
    outcome o = run(state, LIST("train", "run.json", "--model", "other", "--out", "a"));
    assert_int_equal(o.status, 0);
    assert_says(o.err, "does not use 12 of the 28 tensors");
    assert_says(o.err, "the first is transformer.h.1.attn.c_attn.bias");
    outcome_free(&o);
    change_config(state, "n_layer", 2);
    o = run(state, LIST("train", "run.json", "--model", "other", "--out", "b"));
    assert_int_equal(o.status, 0);
    assert_null(strstr(o.err, "does not use"));
    outcome_free(&o);
    change_config(state, "n_inner", 32);
    fail_with(state, NULL, LIST("train", "run.json", "--model", "other", "--out", "c"),
              5, LIST("mlp.c_fc.weight [16, 64]", "in this run's model, [16, 32]"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_unusable_out),
        TEST(test_read_only_out),
        TEST(test_no_room),
        TEST(test_file_limit),
        TEST(test_full_out),
        TEST(test_second_run),
        TEST(test_other_runs),
        TEST(test_resume),
        TEST(test_damaged_checkpoint),
        TEST(test_hostile_model),
        TEST(test_model_folder),
        TEST(test_other_config),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
