// Labels: slow
// What fails below the program: memory, files, the disk. Each fault ends with a status
// and a message, and the next start ends with what an undisturbed run leaves.
#include "command.h"
#include "runs.h"

#include "base/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const train[] = {"train", "run.json", NULL};
enum { TEXT_MAX = 4200 };

// The environment of a run in which the call `nth` (0: none) of those `calls` fails.
typedef struct fault {
    char preload[TEXT_MAX], calls[64], nth[64], act[64], report[TEXT_MAX], path[64];
    setting what;
} fault;

// FAIL_PATH is unset by a fault that is about all paths: "" is held by each.
static void fault_fill(void *const *state, const char *calls, int64_t nth,
                       const char *act, fault *f) {
    *f = (fault){.what = {.environment = {f->preload, f->calls, f->nth, f->act,
                                          f->report, f->path}}};
    snprintf(f->preload, TEXT_MAX, "LD_PRELOAD=%s", TR_FAIL_NTH);
    snprintf(f->calls, sizeof f->calls, "FAIL_CALLS=%s", calls);
    snprintf(f->nth, sizeof f->nth, "FAIL_NTH=%lld", (long long)nth);
    snprintf(f->act, sizeof f->act, "FAIL_ACT=%s", act);
    snprintf(f->path, sizeof f->path, "FAIL_PATH=");
    snprintf(f->report, TEXT_MAX, "FAIL_REPORT=%s", file_path(state, "report"));
}

// How many calls an undisturbed start makes.
static int64_t count_calls(void *const *state, const char *calls) {
    fault f;
    fault_fill(state, calls, 0, "fail", &f);
    outcome o = run_with(state, &f.what, train);
    assert_int_equal(o.status, 0);
    outcome_free(&o);
    char *text = file_read(state, "report", NULL);
    long long number = 0;
    assert_int_equal(sscanf(text, "calls %lld", &number), 1);
    free(text);
    remove(file_path(state, "report"));
    return number;
}

static void remove_out(void *const *state) {
    tr_error err = {0};
    assert_int_equal(tr__folder_remove(file_path(state, "out"), &err), TR_OK);
}

// ---- what a run leaves

enum { FILES = 4 };
static const char *const left_files[FILES] = {
    "out/checkpoints/latest/config.json", "out/checkpoints/latest/model.safetensors",
    "out/checkpoints/latest/optimizer.safetensors",
    "out/checkpoints/latest/state.json"};

typedef struct left {
    char *data[FILES];
    size_t bytes[FILES];
} left;

static void left_read(void *const *state, left *l) {
    for (int i = 0; i < FILES; i++) {
        l->data[i] = file_read(state, left_files[i], &l->bytes[i]);
    }
}

static void left_free(left *l) {
    for (int i = 0; i < FILES; i++) {
        free(l->data[i]);
    }
}

static bool is_same(const left *a, const left *b) {
    bool same = true;
    for (int i = 0; i < FILES; i++) {
        same = same && a->bytes[i] == b->bytes[i] &&
               memcmp(a->data[i], b->data[i], a->bytes[i]) == 0;
    }
    return same;
}

// ---- the walk

static void tell(void *const *state, const outcome *o, const char *what, int64_t nth) {
    char *text = file_read(state, "report", NULL);
    fail_msg("%s, with the fault %lld: %s\nstatus %d\n%s%s", what, (long long)nth, text,
             o->status, o->out, o->err);
}

// One fault, then a start without one.
static void disturb(void *const *state, const char *calls, int64_t nth, const char *act,
                    const left *wanted) {
    fault f;
    left found;
    fault_fill(state, calls, nth, act, &f);
    outcome o = run_with(state, &f.what, train);
    bool killed = strcmp(act, "kill") == 0;
    bool told = o.status > 0 && o.status <= 8 && strstr(o.err, "tranche: ");
    if (killed ? o.status != 1000 + 9 : o.status != 0 && !told) {
        tell(state, &o, "no status and message", nth);
    }
    outcome_free(&o);
    o = run(state, train);
    if (o.status != 0) {
        tell(state, &o, "the next start fails", nth);
    }
    left_read(state, &found);
    if (!is_same(&found, wanted)) {
        tell(state, &o, "the next start ends elsewhere", nth);
    }
    left_free(&found);
    outcome_free(&o);
    remove(file_path(state, "report"));
}

// Some of all calls, `tries` of them, evenly.
static void walk(void *const *state, const char *calls, const char *act,
                 int64_t tries) {
    if (!TR_FAIL_NTH[0]) {
        skip();
    }
    left wanted;
    run_file(state, classifier_run, ", \"checkpoint\": {\"every\": 2, \"keep\": 2}");
    int64_t count = count_calls(state, calls);
    assert_true(count > 3);
    left_read(state, &wanted);
    int64_t step = count > tries ? count / tries : 1;
    for (int64_t nth = 1 + step / 2; nth <= count; nth += step) {
        remove_out(state);
        disturb(state, calls, nth, act, &wanted);
    }
    left_free(&wanted);
}

static void memory(void **state) {
    walk(state, "memory,map", "fail", 60);
}

static void files(void **state) {
    walk(state, "open,read,write,sync,reserve,rename,folder", "fail", 60);
}

static void kills(void **state) {
    walk(state, "open,write,sync,rename,folder", "kill", 20);
}

// What an earlier process has measured is not emptied where it cannot be opened.
static void metrics(void **state) {
    if (!TR_FAIL_NTH[0]) {
        skip();
    }
    fault f;
    size_t before, after;
    run_file(state, classifier_run, "");
    free(succeed(state, train));
    free(file_read(state, "out/metrics.jsonl", &before));
    fault_fill(state, "open", 1, "fail", &f);
    snprintf(f.path, sizeof f.path, "FAIL_PATH=metrics.jsonl");
    fail_with(state, &f.what, LIST("train", "run.json", "--set", "epochs=3"), 5,
              LIST("out/metrics.jsonl: cannot open"));
    free(file_read(state, "out/metrics.jsonl", &after));
    assert_int_equal(after, before);
}

// ---- a disk that is full for a while

static outcome run_without_room(void *const *state, const char *path, int64_t nth,
                                const char *count) {
    fault f;
    char times[64];
    fault_fill(state, "write", nth, "fail", &f);
    snprintf(f.path, sizeof f.path, "FAIL_PATH=%s", path);
    snprintf(times, sizeof times, "FAIL_COUNT=%s", count);
    f.what.environment[6] = "FAIL_ERRNO=28"; // ENOSPC
    f.what.environment[7] = times;
    return run_with(state, &f.what, train);
}

// One that cannot be written on the way is tried again when the next one is due.
static void full_disk_of_checkpoints(void **state) {
    if (!TR_FAIL_NTH[0]) {
        skip();
    }
    run_file(state, classifier_run, ", \"checkpoint\": {\"every\": 2, \"keep\": 9}");
    outcome o = run_without_room(state, "step-00000004", 1, "1");
    assert_int_equal(o.status, 0);
    assert_says(o.err, "step 4: no checkpoint: ");
    assert_says(o.err, "No space left on device; training goes on until the next try, "
                       "and that of step 2 stays the last");
    outcome_free(&o);
    assert_int_equal(access(file_path(state, "out/checkpoints/step-00000004"), F_OK),
                     -1);
    assert_int_equal(access(file_path(state, "out/checkpoints/step-00000006"), F_OK),
                     0);
    remove_out(state);
    o = run_without_room(state, "step-00000008", 1, "0"); // the run's last one
    assert_int_equal(o.status, 5);
    outcome_free(&o);
    assert_int_equal(access(file_path(state, "out/checkpoints/step-00000006"), F_OK),
                     0);
}

// The lines of metrics.jsonl, each of them whole.
static int count_metrics(void *const *state) {
    char *text = file_read(state, "out/metrics.jsonl", NULL);
    int lines = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), lines++) {
        assert_true(line[0] == '{' && line[strlen(line) - 1] == '}');
    }
    free(text);
    return lines;
}

// Lines wait, and none is missing.
static void full_disk_of_metrics(void **state) {
    if (!TR_FAIL_NTH[0]) {
        skip();
    }
    run_file(state, classifier_run, "");
    free(succeed(state, train));
    int all = count_metrics(state);
    remove_out(state);
    outcome o = run_without_room(state, "metrics.jsonl", 3, "2");
    assert_int_equal(o.status, 0);
    assert_says(o.err, "No space left on device; training goes on, and lines wait");
    assert_says(o.err, "metrics.jsonl: is written again, with the lines that waited");
    outcome_free(&o);
    assert_int_equal(count_metrics(state), all);
    remove_out(state);
    o = run_without_room(state, "metrics.jsonl", all - 1, "0"); // to the end
    assert_int_equal(o.status, 0);
    assert_says(o.err, "there was no room to the end; 2 lines are missing");
    outcome_free(&o);
    assert_int_equal(count_metrics(state), all - 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(memory),
                                       TEST(files),
                                       TEST(kills),
                                       TEST(metrics),
                                       TEST(full_disk_of_checkpoints),
                                       TEST(full_disk_of_metrics)};
    return cmocka_run_group_tests_name("faults", tests, NULL, NULL);
}
