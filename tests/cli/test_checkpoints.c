// Checkpoints as the program's users meet them.
#include "command.h"
#include "runs.h"

#include "base/memory.h"
#include "files/checkpoint/state.h"

#include <tranche/extend/plan.h>

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// ---- a state.json that was changed, its own check included

static const char state_file[] = "out/checkpoints/latest/state.json";

static void change_number(void *const *state, const tr_state *was,
                          const tr_manifest *manifest, const char *name, double value) {
    tr_error err = {0};
    char *text = NULL;
    tr_state now = *was;
    assert_true(tr__state_numbers_set(&now.numbers, name, value));
    assert_int_equal(tr__state_encode(&now, manifest, &text, &err), TR_OK);
    file_text(state, state_file, text);
    tr__free(text);
}

static void test_hostile_state(void **state) {
    static const struct {
        const char *name;
        double value;
    } cases[] = {
        {"planner.micro_batch", 0},
        {"planner.optimizer_placement", 99},
        {"planner.param_placement", -7},
        {"planner.wave", 0},
        {"guard_rate", NAN},
        {"guard_rate", 1e300},
        {"guard_rate", -1},
        {"fixed_exponent", 9e15},
        {"batch", 1e300},
        {"learned_samples", -1},
        {"planner.recomputed_ops", -1},
    };
    tr_error err = {0};
    tr_state was;
    tr_manifest manifest;
    run_file(state, classifier_run,
             ", \"memory\": {\"device\": \"1GiB\", \"host\": \"1GiB\"}");
    free(succeed(state, LIST("train", "run.json")));
    assert_int_equal(
        tr__state_read(file_path(state, state_file), &was, &manifest, &err), TR_OK);
    double chosen = 0;
    assert_true(tr__state_numbers_get(&was.numbers, "planner.micro_batch", &chosen));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        change_number(state, &was, &manifest, cases[i].name, cases[i].value);
        fail_with(state, NULL, LIST("train", "run.json", "--set", "epochs=3"), 5,
                  LIST("state.json", cases[i].name));
    }
    // What the planner might have chosen, but not for this run.
    for (double m = 1; m < 3e9; m = 4 * m + 1) {
        change_number(state, &was, &manifest, "planner.micro_batch", fmin(m, 0x1p31));
        outcome o = run(state, LIST("train", "run.json", "--set", "epochs=3"));
        assert_true(o.status == 0 || o.status == 3 || o.status == 5);
        outcome_free(&o);
    }
}

// ---- names that earlier versions wrote

// The planner's choices under the names of earlier versions; the optimizer's states are
// on the host by them, where this run's planner has no reason to place them.
static void rename_choices(tr_state_numbers *numbers) {
    static const char *const names[][2] = {
        {"planner.optimizer_placement", "planner.optimizer_home"},
        {"planner.grad_placement", "planner.grad_home"},
        {"planner.param_placement", "planner.param_home"},
        {"planner.boundary_placement", "planner.boundary_home"}};
    assert_true(tr__state_numbers_set(numbers, names[0][0], TR_SPACE_HOST));
    for (int i = 0; i < numbers->count; i++) {
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            char *name = numbers->item[i].name;
            if (strcmp(name, names[k][0]) == 0) {
                snprintf(name, sizeof numbers->item[i].name, "%s", names[k][1]);
            }
        }
    }
}

static void test_old_names_of_choices(void **state) {
    tr_error err = {0};
    tr_state was;
    tr_manifest manifest;
    char *text = NULL;
    // Without measurements, which other programs could disturb.
    run_file(state, classifier_run,
             ", \"memory\": {\"device\": \"1GiB\", \"host\": \"1GiB\"}, "
             "\"execution\": {\"reproducible\": true}");
    outcome o = run(state, LIST("train", "run.json"));
    assert_int_equal(o.status, 0);
    assert_non_null(strstr(o.err, "no offload"));
    outcome_free(&o);
    assert_int_equal(
        tr__state_read(file_path(state, state_file), &was, &manifest, &err), TR_OK);
    rename_choices(&was.numbers);
    assert_int_equal(tr__state_encode(&was, &manifest, &text, &err), TR_OK);
    file_text(state, state_file, text);
    tr__free(text);
    o = run(state, LIST("train", "run.json", "--set", "epochs=3"));
    assert_int_equal(o.status, 0);
    assert_non_null(strstr(o.err, "offload: optimizer to cpu"));
    outcome_free(&o);
}

// ---- what lies in the out folder's places

static void assert_untouched(void *const *state, const char *name) {
    char *text = file_read(state, name, NULL);
    assert_string_equal(text, "mine");
    free(text);
}

static void link_to(void *const *state, const char *target, const char *name) {
    assert_int_equal(symlink(file_path(state, target), file_path(state, name)), 0);
}

// A folder of weights alone, as Hugging Face's are, is no checkpoint.
static void test_weights_alone(void **state) {
    static const char *const weights = "out/checkpoints/step-00000006";
    run_file(state, text_run, "");
    free(succeed(state, LIST("train", "run.json")));
    unlink(file_path(state, "out/checkpoints/step-00000006/state.json"));
    fail_with(state, NULL,
              LIST("train", "run.json", "--out", "out2", "--resume", weights), 5,
              LIST(weights, "is no checkpoint", "state.json", "--model"));
    free(
        succeed(state, LIST("train", "run.json", "--out", "out2", "--model", weights)));
}

static void folder(void *const *state, const char *name) {
    assert_int_equal(mkdir(file_path(state, name), 0777), 0);
}

static void test_links_in_the_way(void **state) {
    run_file(state, classifier_run, ", \"checkpoint\": {\"every\": 2}");
    file_text(state, "victim", "mine");
    folder(state, "elsewhere");
    folder(state, "elsewhere/step-00000001.partial");
    file_text(state, "elsewhere/step-00000001.partial/file", "mine");
    folder(state, "real");
    link_to(state, "real", "out"); // the user's own choice of a disk
    link_to(state, "victim", "out/run.json.new");
    link_to(state, "victim", "out/plan.txt.new");
    free(succeed(state, LIST("train", "run.json")));
    assert_untouched(state, "victim");
    link_to(state, "elsewhere", "real/linked");
    folder(state, "out2");
    link_to(state, "victim", "out2/metrics.jsonl");
    fail_with(state, NULL, LIST("train", "run.json", "--out", "out2"), 5,
              LIST("out2/metrics.jsonl", "symbolic link"));
    folder(state, "out3");
    link_to(state, "elsewhere", "out3/checkpoints");
    fail_with(state, NULL, LIST("train", "run.json", "--out", "out3"), 5,
              LIST("out3/checkpoints", "symbolic link"));
    fail_with(state, NULL,
              LIST("train", "run.json", "--out", "out3", "--resume", "never"), 5,
              LIST("out3/checkpoints", "symbolic link"));
    folder(state, "out4");
    link_to(state, "victim", "out4/run.json");
    fail_with(state, NULL, LIST("train", "run.json", "--out", "out4"), 5,
              LIST("out4/run.json", "not a regular file"));
    assert_untouched(state, "victim");
    assert_untouched(state, "elsewhere/step-00000001.partial/file");
}

// What a simulation writes does not go through a link either.
static void test_simulated_traces(void **state) {
    run_file(state, classifier_run, "");
    machine_file(state, "");
    file_text(state, "victim", "mine");
    link_to(state, "victim", "t.json");
    link_to(state, "victim", "u.json.new");
    assert_int_equal(mkfifo(file_path(state, "pipe"), 0666), 0);
    fail_with(state, NULL,
              LIST("simulate", "run.json", "--machine", "m.json", "--trace", "t.json"),
              5, LIST("t.json: cannot replace: not a regular file"));
    fail_with(state, NULL,
              LIST("simulate", "run.json", "--machine", "m.json", "--trace", "pipe"), 5,
              LIST("pipe: cannot replace: not a regular file"));
    free(succeed(state, LIST("simulate", "run.json", "--machine", "m.json", "--trace",
                             "u.json")));
    json_decref(file_json(state, "u.json"));
    assert_untouched(state, "victim");
}

// A pipe that nobody reads or writes holds nobody up.
static void test_pipes_in_the_way(void **state) {
    run_file(state, classifier_run, "");
    folder(state, "out");
    assert_int_equal(mkfifo(file_path(state, "out/metrics.jsonl"), 0666), 0);
    fail_with(state, NULL, LIST("train", "run.json"), 5,
              LIST("out/metrics.jsonl", "not a regular file"));
    assert_int_equal(unlink(file_path(state, "out/metrics.jsonl")), 0);
    assert_int_equal(mkfifo(file_path(state, "out/run.json.new"), 0666), 0);
    assert_int_equal(mkfifo(file_path(state, "trace.json"), 0666), 0);
    outcome o = run(state, LIST("train", "run.json", "--trace", "trace.json"));
    assert_int_not_equal(o.status, -1); // hung
    outcome_free(&o);
    struct stat info;
    assert_int_equal(lstat(file_path(state, "trace.json"), &info), 0);
    assert_true(S_ISFIFO(info.st_mode));
    assert_int_equal(unlink(file_path(state, "out/metrics.jsonl")), 0);
    assert_int_equal(mkfifo(file_path(state, "out/checkpoints/pipe"), 0666), 0);
    free(succeed(state, LIST("train", "run.json", "--set", "epochs=3")));
}

// ---- metrics.jsonl

// A number that nine digits do not hold comes back.
static void test_metrics_digits(void **state) {
    run_file(state, classifier_run,
             ", \"fp16\": {\"enabled\": true, \"initial_scale_power\": 32, "
             "\"hysteresis\": 100}");
    free(succeed(state, LIST("train", "run.json")));
    char *text = file_read(state, "out/metrics.jsonl", NULL);
    assert_says(text, "\"loss_scale\": 4294967296,");
    free(text);
}

// ---- when they are saved, and which stay

static int64_t step_of_link(void *const *state, const char *name) {
    char target[64];
    ssize_t length = readlink(file_path(state, name), target, sizeof target - 1);
    assert_true(length > 0);
    target[length] = '\0';
    return strtoll(target + strlen("step-"), NULL, 10);
}

static bool is_there(void *const *state, const char *name) {
    return access(file_path(state, name), F_OK) == 0;
}

// By the clock, where no steps are given.
static void test_minutes(void **state) {
    run_file(state, text_run, ", \"checkpoint\": {\"minutes\": 1e-8, \"keep\": 100}");
    free(succeed(state, LIST("train", "run.json")));
    assert_true(is_there(state, "out/checkpoints/step-00000003/state.json"));
    free(succeed(state, LIST("train", "run.json", "--out", "never", "--set",
                             "checkpoint.minutes=0")));
    assert_false(is_there(state, "never/checkpoints/step-00000003"));
    assert_true(is_there(state, "never/checkpoints/step-00000006/state.json"));
}

// A step whose batch grows needs more memory, and may be the last.
static void test_before_a_larger_batch(void **state) {
    run_file(state, text_run,
             ", \"batch_schedule\": [[2, 10], [4, 5]], "
             "\"checkpoint\": {\"keep\": 100}");
    free(succeed(state, LIST("train", "run.json")));
    assert_true(is_there(state, "out/checkpoints/step-00000002/state.json"));
    assert_false(is_there(state, "out/checkpoints/step-00000004"));
}

typedef struct lowest {
    int64_t step;
    double loss;
} lowest;

static lowest lowest_of(void *const *state, const char *name) {
    char *text = file_read(state, name, NULL);
    lowest found = {-1, INFINITY};
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        const char *at = strstr(line, "\"validation_loss\": ");
        long long step = 0;
        if (at && sscanf(line, "{\"step\": %lld", &step) == 1) {
            double loss = strtod(strchr(at, ':') + 1, NULL);
            found = loss < found.loss ? (lowest){step, loss} : found;
        }
    }
    free(text);
    return found;
}

// 40 samples in their order, 4 a step; what is made of number 8 overflows.
static void overflowing_run(void *const *state) {
    char rows[40 * 24] = "a,b,label\n";
    for (int i = 0; i < 40; i++) {
        size_t used = strlen(rows);
        snprintf(rows + used, sizeof rows - used,
                 i == 8 ? "3e38,-3e38,%d\n" : "1,%d,0\n", i % 3);
    }
    file_text(state, "rows.csv", rows);
    file_text(state, "run.json",
              "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [2, 4, 3]}, "
              "\"data\": {\"format\": \"csv\", \"train\": \"rows.csv\", \"order\": "
              "\"sequential\"}, \"steps\": 20, \"train_batch_size\": 4}");
}

// Of an epoch's ten steps that is the third: the first time it is skipped, the second
// time it ends the run. Before that a checkpoint is saved, though none was due; after a
// spike, once an update has been applied again.
static void test_before_the_end(void **state) {
    static const struct {
        const char *set, *says;
        int64_t step;
    } ends[] = {
        {"fp16={\"enabled\": true, \"initial_scale_power\": 12, \"hysteresis\": 1, "
         "\"min_loss_scale\": 2048}",
         "loss scale", 3},
        {"spike_guard={\"action\": \"skip\", \"after\": 2, \"limit\": 1}",
         "spike_guard", 4}};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        overflowing_run(state);
        outcome o = run(state, LIST("train", "run.json", "--set", ends[i].set, "--out",
                                    i ? "spike" : "overflow"));
        assert_int_equal(o.status, 7);
        assert_says(o.err, ends[i].says);
        outcome_free(&o);
        json_t *kept = file_json(state, i ? "spike/checkpoints/latest/state.json"
                                          : "overflow/checkpoints/latest/state.json");
        json_int_t step = json_integer_value(json_object_get(kept, "step"));
        assert_int_equal(step, ends[i].step);
        json_decref(kept);
    }
}

// The rate is far too high: the loss falls, then rises. Resumed, the best is
// remembered.
static void test_best(void **state) {
    run_file(state, text_run,
             ", \"checkpoint\": {\"best\": true, \"keep\": 1}, \"evaluation\": "
             "{\"every\": 1}, \"optimizer\": {\"type\": \"AdamW\", \"params\": "
             "{\"lr\": 1}}");
    free(succeed(state, LIST("train", "run.json", "--steps", "12")));
    lowest best = lowest_of(state, "out/metrics.jsonl");
    assert_in_range(best.step, 1, 10);
    assert_int_equal(step_of_link(state, "out/checkpoints/best"), best.step);
    assert_int_equal(step_of_link(state, "out/checkpoints/latest"), 12);
    assert_true(is_there(state, "out/checkpoints/best/state.json"));
    assert_false(is_there(state, "out/checkpoints/step-00000011"));
    free(succeed(state, LIST("train", "run.json", "--steps", "14")));
    best = lowest_of(state, "out/metrics.jsonl");
    assert_int_equal(step_of_link(state, "out/checkpoints/best"), best.step);
    assert_int_equal(step_of_link(state, "out/checkpoints/latest"), 14);
}

// ---- what a terminal is shown

// A safetensors file whose one tensor has such a name.
static void write_named(void *const *state, const char *file, const char *name) {
    char data[256] = {0};
    int length = snprintf(data + 8, sizeof data - 8,
                          "{\"%s\":{\"dtype\":\"F32\",\"shape\":[1],"
                          "\"data_offsets\":[0,4]}}",
                          name);
    uint64_t header = (uint64_t)length;
    memcpy(data, &header, sizeof header);
    memset(data + 8 + length, 0, 4);
    file_write(state, file, data, (size_t)length + 12);
}

// Names of others turn no terminal around; a pipe gets them as they are.
static void test_hostile_names(void **state) {
    static const char name[] = "w\xc2\x9b"
                               "2J\xe2\x80\xae"
                               "x";
    static const char file[] = "a\x1b[2Jb.safetensors";
    static const setting terminal = {.terminal = true, .columns = 120};
    write_named(state, file, name);
    const char *const commands[][4] = {{"inspect", file}, {"diff", file, "other"}};
    write_named(state, "other", "y");
    for (size_t i = 0; i < 2; i++) {
        outcome o = run_with(state, &terminal, commands[i]);
        assert_says(o.out, "w?2J?x");
        assert_says(o.out, "a?[2Jb.safetensors");
        assert_null(strchr(o.out, '\x1b'));
        outcome_free(&o);
        o = run(state, commands[i]);
        assert_says(o.out, name);
        assert_says(o.out, file);
        outcome_free(&o);
    }
}

// A path may be of any bytes; JSON is of UTF-8.
static void test_paths_in_json(void **state) {
    static const char *const paths[][2] = {
        {"a\xff\xc3\xa4.safetensors", "a\xef\xbf\xbd\xc3\xa4.safetensors"},
        {"b\xe0\x80\xf4\x90", "b\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"c\xf0\x9f\x98\x80\xed\xa0\x80\xc3",
         "c\xf0\x9f\x98\x80\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
    };
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        write_named(state, paths[i][0], "w");
        json_t *is = succeed_json(state, LIST("inspect", paths[i][0], "--json"));
        assert_string_equal(json_string_value(json_object_get(is, "path")),
                            paths[i][1]);
        json_decref(is);
        is = succeed_json(state, LIST("diff", paths[i][0], paths[i][0], "--json"));
        assert_string_equal(json_string_value(json_object_get(is, "b")), paths[i][1]);
        json_decref(is);
    }
    file_text(state, "d\xff", "text");
    json_t *is = succeed_json(state, LIST("inspect", "d\xff", "--json"));
    assert_string_equal(json_string_value(json_object_get(is, "path")),
                        "d\xef\xbf\xbd");
    json_decref(is);
}

// The same of what a run, an evaluation and a plot say, on both streams.
static void test_hostile_folders(void **state) {
    static const char out[] = "o\xc2\x9b"
                              "2J\xe2\x80\xae"
                              "x";
    static const char both[] = "\"$0\" \"$@\" 2>&1";
    static const setting pipe_ = {.program = "/bin/sh"};
    static const setting terminal = {
        .program = "/bin/sh", .terminal = true, .columns = 120};
    const char *const commands[][11] = {
        {"-c", both, TR_PROGRAM, "train", "run.json", "--resume", "never", "--out",
         out},
        {"-c", both, TR_PROGRAM, "evaluate", out, "--set", "seed=3"},
        {"-c", both, TR_PROGRAM, "plot", out},
    };
    run_file(state, text_run, ", \"checkpoint\": {\"every\": 2}");
    for (size_t i = 0; i < 3; i++) {
        outcome o = run_with(state, &pipe_, commands[i]);
        assert_int_equal(o.status, 0);
        assert_true(i == 1 || strstr(o.out, out));
        outcome_free(&o);
        o = run_with(state, &terminal, commands[i]);
        assert_int_equal(o.status, 0);
        assert_null(strstr(o.out, "\xc2\x9b"));
        assert_null(strstr(o.out, "\xe2\x80\xae"));
        assert_true(i == 1 || strstr(o.out, "o?2J?x"));
        outcome_free(&o);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_hostile_state),    TEST(test_old_names_of_choices),
        TEST(test_simulated_traces), TEST(test_links_in_the_way),
        TEST(test_pipes_in_the_way), TEST(test_metrics_digits),
        TEST(test_minutes),          TEST(test_before_a_larger_batch),
        TEST(test_before_the_end),   TEST(test_best),
        TEST(test_hostile_folders),  TEST(test_hostile_names),
        TEST(test_weights_alone),    TEST(test_paths_in_json)};
    return cmocka_run_group_tests_name("checkpoints", tests, NULL, NULL);
}
