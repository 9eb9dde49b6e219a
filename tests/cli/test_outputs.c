// What a run leaves in its out folder.
#include "command.h"
#include "runs.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

// ---- metrics.jsonl

// Its lines as an array of objects.
static json_t *metrics(void *const *state, const char *name) {
    char *text = file_read(state, name, NULL), *rest = text, *line;
    json_t *all = json_array();
    while ((line = strsep(&rest, "\n")) && *line) {
        json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
        assert_true(json_is_object(object));
        json_array_append_new(all, object);
    }
    assert_true(line && *line == '\0'); // the file ends with a newline
    free(text);
    return all;
}

static json_int_t whole_in(const json_t *object, const char *name) {
    const json_t *value = json_object_get(object, name);
    if (!json_is_integer(value)) {
        fail_msg("%s is missing, or no whole number", name);
    }
    return json_integer_value(value);
}

static void check_spaces(const json_t *line) {
    const json_t *planned = json_object_get(line, "planned_peak_bytes");
    const json_t *peak = json_object_get(line, "peak_bytes");
    assert_true(whole_in(planned, "device") > 0);
    assert_true(whole_in(planned, "host") >= 0);
    assert_true(whole_in(peak, "device") == whole_in(planned, "device"));
    assert_true(whole_in(peak, "host") <= whole_in(planned, "host"));
    assert_true(whole_in(peak, "process") > 0);
}

// Everything that a line of a step has, with its type and, where it is known, value.
static void check_step(const json_t *line, int step, int samples, int per_sample) {
    assert_int_equal(whole_in(line, "step"), step);
    assert_int_equal(whole_in(line, "update"), step);
    assert_true(whole_in(line, "epoch") >= 0);
    assert_int_equal(whole_in(line, "samples"), samples);
    assert_int_equal(whole_in(line, "tokens"), samples * per_sample);
    assert_true(number_in(line, "loss") > 0);
    assert_true(number_in(line, "lr") >= 0);
    assert_true(number_in(line, "grad_norm") > 0);
    assert_true(json_is_false(json_object_get(line, "skipped")));
    assert_true(number_in(line, "loss_scale") == 1);
    assert_true(number_in(line, "seconds") > 0);
    assert_true(number_in(line, "tokens_per_second") > 0);
    assert_true(number_in(line, "tokens_per_second_per_rank") ==
                number_in(line, "tokens_per_second"));
    assert_true(number_in(line, "tflops_per_rank") > 0);
    check_spaces(line);
}

// Every line says what it is and when it was written, which never goes back.
static void check_kinds(const json_t *all, const char *const *kinds) {
    double before = 1.7e9; // 2023
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *line = json_array_get(all, i);
        assert_string_equal(json_string_value(json_object_get(line, "kind")), kinds[i]);
        assert_true(number_in(line, "time") >= before);
        before = number_in(line, "time");
    }
    assert_true(before <= (double)time(NULL) + 1);
}

// 20 samples in batches of 6: 4 steps an epoch, the last one of 2.
static void test_classifier_metrics(void **state) {
    static const int samples[] = {6, 12, 18, 20, 26, 32, 38, 40};
    run_file(state, classifier_run, "");
    free(succeed(state, LIST("train", "run.json")));
    json_t *all = metrics(state, "out/metrics.jsonl");
    assert_int_equal(json_array_size(all), 8 + 2);
    check_kinds(all, LIST("step", "step", "step", "step", "epoch", "step", "step",
                          "step", "step", "epoch"));
    size_t at = 0;
    for (int epoch = 0; epoch < 2; epoch++) {
        double loss = 0, accuracy = 0;
        for (int i = 0; i < 4; i++) {
            const json_t *line = json_array_get(all, at++);
            int step = 4 * epoch + i + 1, batch = i < 3 ? 6 : 2;
            check_step(line, step, samples[step - 1], 1);
            assert_int_equal(whole_in(line, "epoch"), epoch);
            assert_true(number_in(line, "targets") == batch);
            loss += batch * number_in(line, "loss") / 20;
            accuracy += batch * number_in(line, "accuracy") / 20;
        }
        const json_t *line = json_array_get(all, at++);
        assert_int_equal(whole_in(line, "epoch"), epoch);
        assert_int_equal(whole_in(line, "step"), 4 * epoch + 4);
        assert_float_equal(number_in(line, "epoch_loss"), loss, 1e-7);
        assert_float_equal(number_in(line, "epoch_accuracy"), accuracy, 1e-7);
        assert_true(number_in(line, "epoch_targets") == 20);
        assert_true(number_in(line, "epoch_seconds") > 0);
    }
    json_decref(all);
}

// Evaluations every 4 steps and at the end, after the step's own line.
static void test_text_metrics(void **state) {
    run_file(state, text_run, ", \"evaluation\": {\"every\": 4, \"samples\": 7}");
    free(succeed(state, LIST("train", "run.json")));
    json_t *all = metrics(state, "out/metrics.jsonl");
    assert_int_equal(json_array_size(all), 6 + 2);
    check_kinds(all, LIST("step", "step", "step", "step", "evaluation", "step", "step",
                          "evaluation"));
    for (int step = 1, at = 0; step <= 6; step++) {
        check_step(json_array_get(all, (size_t)at++), step, 5 * step, 16);
        if (step == 4 || step == 6) {
            const json_t *line = json_array_get(all, (size_t)at++);
            assert_int_equal(whole_in(line, "step"), step);
            assert_true(number_in(line, "validation_loss") > 0);
            assert_int_equal(whole_in(line, "validation_samples"), 7);
            assert_null(json_object_get(line, "validation_accuracy"));
        }
    }
    json_decref(all);
}

static void test_validation_accuracy(void **state) {
    run_file(state, classifier_run, "");
    free(succeed(state, LIST("train", "run.json", "--set", "data.validation=0.3")));
    json_t *all = metrics(state, "out/metrics.jsonl");
    const json_t *line = json_array_get(all, json_array_size(all) - 1);
    double accuracy = number_in(line, "validation_accuracy");
    assert_true(accuracy >= 0 && accuracy <= 1);
    assert_int_equal(whole_in(line, "validation_samples"), 6);
    json_decref(all);
}

// A step without anything to learn from is counted and said, and changes nothing.
static void test_skipped(void **state) {
    file_text(state, "data.csv", "1,2,-100\n3,4,-100\n1,1,0\n2,2,1\n");
    file_text(state, "run.json",
              "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [2, 4, 2]}, "
              "\"data\": {\"format\": \"csv\", \"train\": \"data.csv\", \"order\": "
              "\"sequential\"}, \"epochs\": 1, \"train_batch_size\": 2}");
    char *text = succeed(state, LIST("train", "run.json"));
    assert_says(text,
                "step 1: no sample of the batch has a target: update skipped (1 ");
    free(text);
    json_t *all = metrics(state, "out/metrics.jsonl");
    const json_t *first = json_array_get(all, 0), *second = json_array_get(all, 1);
    assert_true(json_is_true(json_object_get(first, "skipped")));
    assert_true(json_is_null(json_object_get(first, "loss")));
    assert_int_equal(whole_in(first, "update"), 0);
    assert_true(json_is_false(json_object_get(second, "skipped")));
    assert_int_equal(whole_in(second, "update"), 1);
    assert_true(number_in(json_array_get(all, 2), "epoch_targets") == 2);
    json_decref(all);
}

// Steps beyond a checkpoint are cut off before a resumed run writes its own.
static void test_cut_back(void **state) {
    run_file(state, text_run, ", \"checkpoint\": {\"every\": 2, \"keep\": 9}");
    free(succeed(state, LIST("train", "run.json", "--out", "whole")));
    free(succeed(state, LIST("train", "run.json")));
    free(succeed(
        state, LIST("train", "run.json", "--resume", "out/checkpoints/step-00000002")));
    json_t *a = metrics(state, "whole/metrics.jsonl");
    json_t *b = metrics(state, "out/metrics.jsonl");
    assert_int_equal(json_array_size(a), json_array_size(b));
    for (size_t i = 0; i < json_array_size(a); i++) {
        const json_t *x = json_array_get(a, i), *y = json_array_get(b, i);
        assert_int_equal(whole_in(x, "step"), whole_in(y, "step"));
        const char *name = json_object_get(x, "loss") ? "loss" : "validation_loss";
        assert_true(json_equal(json_object_get(x, name), json_object_get(y, name)));
    }
    json_decref(a);
    json_decref(b);
}

// ---- run.json and plan.txt

static void test_run_again(void **state) {
    static const char *const runs[] = {classifier_run, text_run};
    for (int i = 0; i < 2; i++) {
        run_file(
            state, runs[i],
            ", \"optimizer\": {\"params\": {\"lr\": 0.003}, \"groups\": [{\"match\": "
            "\"*.bias\", \"weight_decay\": 0}]}, \"scheduler\": {\"type\": "
            "\"WarmupCosineLR\", \"params\": {\"warmup_num_steps\": 2}}");
        free(succeed(state, LIST("train", "run.json", "--set",
                                 "optimizer.params.weight_decay=0.1", "--out", "a")));
        free(succeed(state, LIST("train", "a/run.json", "--out", "b")));
        free(succeed(state, LIST("diff", "a", "b")));
        // And once more, from the second one's.
        free(succeed(state, LIST("train", "b/run.json", "--out", "c")));
        free(succeed(state, LIST("diff", "a", "c")));
        for (const char *name = "abc"; *name; name++) {
            char folder[2] = {*name, '\0'},
                 old[4] = {'o', *name, (char)('0' + i), '\0'};
            assert_int_equal(rename(file_path(state, folder), file_path(state, old)),
                             0);
        }
    }
}

// --steps takes the place of epochs, in run.json too.
static void test_steps_for_epochs(void **state) {
    run_file(state, classifier_run, "");
    free(succeed(state, LIST("train", "run.json", "--steps", "3", "--out", "a")));
    json_t *run = file_json(state, "a/run.json");
    assert_int_equal(whole_in(run, "steps"), 3);
    assert_null(json_object_get(run, "epochs"));
    json_decref(run);
    free(succeed(state, LIST("train", "a/run.json", "--out", "b")));
    free(succeed(state, LIST("diff", "a", "b")));
}

// The value at "a.b.c".
static const json_t *value_at(const json_t *object, const char *path) {
    char names[256];
    snprintf(names, sizeof names, "%s", path);
    char *rest = names, *name;
    while (object && (name = strsep(&rest, ".")) != NULL) {
        object = json_object_get(object, name);
    }
    return object;
}

static void count_leaves(const json_t *object, int depth, size_t *count) {
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)object, name, value) {
        bool skipped = depth == 0 &&
                       (strcmp(name, "origins") == 0 || strcmp(name, "derived") == 0);
        bool group = json_is_object(value) && strcmp(name, "model") != 0;
        if (!skipped && group) {
            count_leaves(value, depth + 1, count);
        } else if (!skipped) {
            ++*count;
        }
    }
}

// Every value has an origin, and every origin is of a value.
static void test_origins(void **state) {
    static const char *const expected[][2] = {
        {"seed", "file"},
        {"out", "command line"},
        {"steps", "derived: from epochs"},
        {"optimizer.params.lr", "--set"},
        {"optimizer.params.eps", "default"},
        {"model", "file: with its defaults"},
        {"execution.threads", "auto: the size of the work, and the cores"},
        {"execution.wave", "auto: chosen by the plan"},
    };
    run_file(state, classifier_run, "");
    free(succeed(state, LIST("train", "run.json", "--out", "o", "--set",
                             "optimizer.params.lr=0.5")));
    json_t *run = file_json(state, "o/run.json");
    const json_t *origins = json_object_get(run, "origins");
    const json_t *derived = json_object_get(run, "derived");
    const char *path;
    json_t *origin;
    size_t leaves = 0;
    json_object_foreach((json_t *)origins, path, origin) {
        assert_true(json_is_string(origin));
        assert_true(value_at(run, path) || json_object_get(derived, path));
    }
    count_leaves(run, 0, &leaves);
    assert_int_equal(leaves + json_object_size(derived), json_object_size(origins));
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        assert_string_equal(json_string_value(json_object_get(origins, expected[i][0])),
                            expected[i][1]);
    }
    assert_true(json_integer_value(json_object_get(derived, "steps")) == 8);
    assert_true(json_is_integer(value_at(run, "execution.threads")));
    json_decref(run);
}

static void test_plan_text(void **state) {
    static const char *const runs[] = {classifier_run, text_run};
    for (int i = 0; i < 2; i++) {
        const char *out = i ? "b" : "a", *file = i ? "b/plan.txt" : "a/plan.txt";
        run_file(state, runs[i], "");
        free(succeed(state, LIST("train", "run.json", "--out", out)));
        char *written = file_read(state, file, NULL);
        char *printed = succeed(state, LIST("plan", "run.json"));
        assert_string_equal(written, printed);
        free(written);
        free(printed);
    }
}

// ---- checkpoints

// Names in a folder, hidden ones but . and .. included.
static int count_names(void *const *state, const char *folder) {
    DIR *stream = opendir(file_path(state, folder));
    assert_non_null(stream);
    int count = -2;
    while (readdir(stream)) {
        count++;
    }
    closedir(stream);
    return count;
}

static void test_checkpoints(void **state) {
    static const char *const files[] = {"config.json", "model.safetensors",
                                        "optimizer.safetensors", "state.json"};
    char target[PATH_MAX] = "", name[PATH_MAX];
    struct stat info;
    run_file(state, classifier_run, ", \"checkpoint\": {\"every\": 2, \"keep\": 3}");
    free(succeed(state, LIST("train", "run.json")));
    assert_int_equal(count_names(state, "out"), 5);
    assert_int_equal(count_names(state, "out/checkpoints"), 3 + 1);
    for (int step = 4; step <= 8; step += 2) {
        snprintf(name, sizeof name, "out/checkpoints/step-%08d", step);
        assert_int_equal(count_names(state, name), 4);
        for (int i = 0; i < 4; i++) {
            snprintf(name, sizeof name, "out/checkpoints/step-%08d/%s", step, files[i]);
            assert_int_equal(stat(file_path(state, name), &info), 0);
            assert_true(S_ISREG(info.st_mode) && info.st_size > 0);
        }
    }
    const char *latest = file_path(state, "out/checkpoints/latest");
    assert_int_equal(lstat(latest, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_true(readlink(latest, target, sizeof target - 1) > 0);
    assert_string_equal(target, "step-00000008");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_classifier_metrics),
        TEST(test_text_metrics),
        TEST(test_validation_accuracy),
        TEST(test_skipped),
        TEST(test_cut_back),
        TEST(test_run_again),
        TEST(test_steps_for_epochs),
        TEST(test_origins),
        TEST(test_plan_text),
        TEST(test_checkpoints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
