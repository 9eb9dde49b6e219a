// The program ended from outside: killed at any moment, or asked to stop by a signal.
// Resumed, it comes to the same end as a run that nobody touched.
#include "base/files.h"
#include "program.h"
#include "samples.h"
#include "scratch.h"
#include "trial.h"

#include <tranche/checkpoint.h>

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STEPS = 80, KILLS = 10, TRIES = 60 };

// Dropout, shuffled data over several epochs, evaluations, and checkpoints at steps
// that are no evaluations.
static const char run_text[] =
    "{\"model\": {\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 32, "
    "\"n_head\": 4, \"n_positions\": 16, \"vocab_size\": 256}, \"data\": {\"format\": "
    "\"bytes\", \"train\": [\"%s\"], \"validation\": 0.1}, \"train_batch_size\": 8, "
    "\"train_micro_batch_size_per_gpu\": 3, \"seed\": 3, \"steps\": %d, "
    "\"evaluation\": {\"every\": 7}, \"checkpoint\": {\"every\": %d, \"keep\": 2}, "
    "\"execution\": {\"threads\": 2}, \"optimizer\": {\"params\": {\"lr\": 0.01}}, "
    "\"scheduler\": {\"type\": \"WarmupCosineLR\"}}";

// Writes the data and the run file; returns the run file's path.
static const char *write_run(void *const *state, int checkpoint_every) {
    char text[2048];
    const char *data = scratch_words(state, "words.txt", 3000, 1);
    snprintf(text, sizeof text, run_text, data, STEPS, checkpoint_every);
    return scratch_text(state, "run.json", text);
}

static pid_t start(void *const *state, const char *run, const char *out) {
    const char *arguments[] = {"train", run, "--out", out, NULL};
    return program_start(arguments, scratch_path(state, "log"));
}

static void finish(void *const *state, const char *run, const char *out) {
    const char *arguments[] = {"train", run, "--out", out, NULL};
    program_run(arguments, scratch_path(state, "log"), 0);
}

static void doze(int64_t microseconds) {
    usleep((useconds_t)microseconds);
}

// Until the metrics have so many lines, or the program has ended; no longer than some
// time that a machine at work on other things may need.
static void await_lines(pid_t pid, const char *out, int lines) {
    siginfo_t ended = {0};
    for (int i = 0; i < 60000 && metrics_lines(out) < lines; i++) {
        waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOHANG | WNOWAIT);
        if (ended.si_pid == pid) {
            return;
        }
        doze(1000);
    }
}

static void check_same_end(const char *a, const char *b) {
    tr_error err = {0};
    tr_diff *diff = NULL;
    trial_ok(tr_checkpoint_diff(a, b, &diff, &err), &err);
    assert_true(diff->optimizer_a && diff->optimizer_b);
    assert_true(diff->identical);
    tr_diff_destroy(diff);
    json_t *x = metrics_read(a), *y = metrics_read(b);
    assert_int_equal(json_array_size(x), json_array_size(y));
    for (size_t i = 0; i < json_array_size(x); i++) {
        char *left = json_dumps(json_array_get(x, i), JSON_COMPACT);
        char *right = json_dumps(json_array_get(y, i), JSON_COMPACT);
        assert_string_equal(left, right);
        free(left);
        free(right);
    }
    json_decref(x);
    json_decref(y);
}

// Whole or not there at all, whenever the kill came.
static void check_checkpoints(const char *out) {
    tr_error err = {0};
    tr_checkpoint_entry *entries = NULL;
    size_t count = 0;
    trial_ok(tr_checkpoint_list(out, &entries, &count, &err), &err);
    for (size_t i = 0; i < count; i++) {
        assert_true(!entries[i].latest || entries[i].complete);
    }
    tr_checkpoint_list_destroy(entries, count);
}

// The program was done before anybody touched it: what it came to is checked, and it
// begins again.
static void begin_anew(const char *out, const char *whole) {
    tr_error err = {0};
    check_same_end(out, whole);
    trial_ok(tr__folder_remove(out, &err), &err);
}

static void killed_at_random_moments(void **state) {
    const char *run = write_run(state, 3);
    const char *whole = scratch_path(state, "whole");
    const char *broken = scratch_path(state, "broken");
    uint64_t random = 11;
    int killed = 0;
    finish(state, run, whole);
    for (int i = 0; killed < KILLS; i++) {
        assert_true(i < TRIES);
        int before = metrics_lines(broken);
        pid_t pid = start(state, run, broken);
        // Some at the start, when nothing new is there yet; most somewhat later.
        if (i % 3 != 0) {
            await_lines(pid, broken, before + (int)test_between(&random, 1, 9));
        }
        doze(test_between(&random, 0, 15000));
        kill(pid, SIGKILL);
        int status = program_wait(pid, NULL);
        assert_true(status == 0 || status == 1000 + SIGKILL);
        killed += status != 0;
        check_checkpoints(broken);
        if (status == 0) {
            begin_anew(broken, whole);
        }
    }
    finish(state, run, broken);
    check_same_end(broken, whole);
}

static int64_t last_step(const char *out) {
    json_t *metrics = metrics_read(out);
    size_t count = json_array_size(metrics);
    int64_t step = count ? json_integer_value(json_object_get(
                               json_array_get(metrics, count - 1), "step"))
                         : 0;
    json_decref(metrics);
    return step;
}

// The name of the newest checkpoint's folder tells its step.
static int64_t saved_step(const char *out) {
    tr_error err = {0};
    tr_checkpoint_entry *entries = NULL;
    size_t count = 0;
    trial_ok(tr_checkpoint_list(out, &entries, &count, &err), &err);
    int64_t step = count ? entries[count - 1].step : -1;
    assert_true(count == 0 ||
                (entries[count - 1].latest && entries[count - 1].complete));
    tr_checkpoint_list_destroy(entries, count);
    return step;
}

static void asked_to_stop(void **state) {
    static const int signals[] = {SIGINT, SIGTERM, SIGUSR1, SIGHUP};
    const char *run = write_run(state, 0);
    const char *whole = scratch_path(state, "whole");
    const char *broken = scratch_path(state, "broken");
    finish(state, run, whole);
    for (int i = 0, tries = 0; i < 4; tries++) {
        assert_true(tries < TRIES);
        int before = metrics_lines(broken);
        pid_t pid = start(state, run, broken);
        await_lines(pid, broken, before + 5);
        kill(pid, signals[i]);
        int status = program_wait(pid, NULL);
        assert_int_equal(saved_step(broken), last_step(broken));
        if (status == 0) {
            begin_anew(broken, whole);
        } else {
            assert_int_equal(status, 128 + signals[i]);
            assert_true(last_step(broken) > 0 && last_step(broken) <= STEPS);
            i++;
        }
    }
    finish(state, run, broken);
    check_same_end(broken, whole);
}

// Under nohup, which has SIGHUP ignored before the program begins, the program goes on
// when the terminal is closed.
static void left_behind(void **state) {
    const char *run = write_run(state, 0);
    const char *out = scratch_path(state, "out");
    void (*before)(int) = signal(SIGHUP, SIG_IGN);
    pid_t pid = start(state, run, out);
    signal(SIGHUP, before);
    await_lines(pid, out, 5);
    kill(pid, SIGHUP);
    assert_int_equal(program_wait(pid, NULL), 0);
    assert_int_equal(saved_step(out), STEPS);
}

// The same where a library has installed a handler for SIGHUP before main() begins.
static void left_behind_with_handler(void **state) {
    if (TR_HANGUP_HANDLER[0] == '\0') {
        skip(); // a sanitizer wants to be the first library
    }
    setenv("LD_PRELOAD", TR_HANGUP_HANDLER, 1);
    left_behind(state);
    unsetenv("LD_PRELOAD");
}

// While the program stands still both signals gather; when it goes on, the second one
// finds the first and ends it before anything is saved.
static void asked_twice(void **state) {
    const char *run = write_run(state, 0);
    const char *out = scratch_path(state, "out");
    const char *arguments[] = {"train", run, "--out", out, "--steps", "1000000", NULL};
    pid_t pid = program_start(arguments, scratch_path(state, "log"));
    int status = 0;
    await_lines(pid, out, 2);
    kill(pid, SIGSTOP);
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
    kill(pid, SIGINT);
    kill(pid, SIGTERM);
    kill(pid, SIGCONT);
    status = program_wait(pid, NULL);
    assert_true(status == 128 + SIGINT || status == 128 + SIGTERM);
    assert_int_equal(saved_step(out), -1);
}

static void run_again(void *const *state, const char *run, const char *out,
                      const char *option, const char *value) {
    const char *arguments[] = {"train", run, "--out", out, option, value, NULL};
    program_run(arguments, scratch_path(state, "log"), 0);
}

// From an older checkpoint by name: the metrics are cut back to its step, and the same
// end is reached again.
static void from_a_named_checkpoint(void **state) {
    const char *run = write_run(state, 30);
    const char *whole = scratch_path(state, "whole");
    const char *out = scratch_path(state, "out");
    finish(state, run, whole);
    finish(state, run, out);
    run_again(state, run, out, "--resume",
              scratch_path(state, "out/checkpoints/step-00000060"));
    check_same_end(out, whole);
    run_again(state, run, out, "--resume", "auto"); // nothing is left to do
    check_same_end(out, whole);
    run_again(state, run, out, "--resume", "never");
    check_same_end(out, whole);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(killed_at_random_moments),
        TEST(asked_to_stop),
        TEST(left_behind),
        TEST(left_behind_with_handler),
        TEST(asked_twice),
        TEST(from_a_named_checkpoint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
