// A machine that other processes use, too.
#include "command.h"

#include "base/cores.h"
#include "train/watch/crowding.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OTHERS_MAX = 4, SECONDS_MAX = 60 };

static const char model[] =
    "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [16, 32, 10]},"
    " \"data\": {\"format\": \"random\", \"samples\": 64, \"features\": 16,"
    " \"classes\": 10}, \"train_batch_size\": 16, \"steps\": 100000000,"
    " \"optimizer\": {\"type\": \"SGD\", \"params\": {\"lr\": 1e-3}}}";

// Threads that wait for each other spin a thousand times, and then sleep; what the user
// says of it holds.
static void test_spinning_is_short(void **state) {
    setting what = {.program = "/usr/bin/env"};
    const char *const plain[] = {"-u",
                                 "OMP_WAIT_POLICY",
                                 "-u",
                                 "GOMP_SPINCOUNT",
                                 "OMP_DISPLAY_ENV=verbose",
                                 TR_PROGRAM,
                                 "train",
                                 "run.json",
                                 "--steps",
                                 "1",
                                 NULL};
    const char *const own[] = {"-u",
                               "OMP_WAIT_POLICY",
                               "GOMP_SPINCOUNT=77",
                               "OMP_DISPLAY_ENV=verbose",
                               TR_PROGRAM,
                               "train",
                               "run.json",
                               "--steps",
                               "1",
                               "--out",
                               "own",
                               NULL};
    file_text(state, "run.json", model);
    outcome o = run_with(state, &what, plain);
    assert_int_equal(o.status, 0);
    assert_says(o.err, "GOMP_SPINCOUNT = '1000'");
    outcome_free(&o);
    o = run_with(state, &what, own);
    assert_int_equal(o.status, 0);
    assert_says(o.err, "GOMP_SPINCOUNT = '77'");
    assert_null(strstr(o.err, "GOMP_SPINCOUNT = '1000'"));
    outcome_free(&o);
}

static pid_t occupy(void) {
    pid_t child = fork();
    if (child == 0) {
        alarm(SECONDS_MAX);
        for (volatile unsigned turns = 0;; turns++) {
        }
    }
    assert_true(child > 0);
    return child;
}

// Processes that take the cores are told of, once.
static void test_others_are_told_of(void **state) {
    tr_core_times times = tr__core_times();
    pid_t others[OTHERS_MAX];
    setting what = {.program = "/usr/bin/timeout"};
    if (times.cores == 0 || !(times.busy > 0)) {
        skip(); // the system does not tell
    }
    file_text(state, "run.json", model);
    for (int i = 0; i < OTHERS_MAX; i++) {
        others[i] = occupy();
    }
    outcome o = run_with(state, &what,
                         LIST("-s", "INT", "10", TR_PROGRAM, "train", "run.json"));
    for (int i = 0; i < OTHERS_MAX; i++) {
        kill(others[i], SIGKILL);
        waitpid(others[i], NULL, 0);
    }
    const char *said = strstr(o.out, "other processes use ");
    assert_non_null(said);
    assert_says(said, "cores that this run computes on, so steps take longer");
    assert_null(strstr(said + 1, "other processes use "));
    outcome_free(&o);
}

// On four cores: others may use what the threads leave, and half a core.
static void test_what_is_crowded(void **state) {
    tr_core_times before = {.cores = 4}, after = {.clock = 10, .cores = 4};
    (void)state;
    after.own = 20;
    after.busy = 44; // 2.4 cores
    assert_false(tr__crowding_is(&before, &after, 2));
    assert_true(tr__crowding_is(&before, &after, 3));
    assert_int_equal(tr__crowding_room(&before, &after), 2);
    after.busy = 46; // 2.6
    assert_true(tr__crowding_is(&before, &after, 2));
    assert_int_equal(tr__crowding_room(&before, &after), 1);
    after.busy = 60;
    assert_int_equal(tr__crowding_room(&before, &after), 1);
    after.cores = before.cores = 0; // the system does not tell
    assert_false(tr__crowding_is(&before, &after, 1));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_spinning_is_short),
        TEST(test_others_are_told_of),
        TEST(test_what_is_crowded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
