// Labels: ranks slow
// `tranche train --ranks N` starts its ranks itself: as a launcher would, with its exit
// status, and with the signals that ask for an end.
#include "command.h"
#include "runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MANY "--steps", "100000000", "--set", "log.every_seconds=0.2"

static void must_have_ranks(void) {
    if (TR_MPIRUN[0] == '\0') {
        skip();
    }
}

// The run of two ranks is the run of one, and says that there are two.
static void test_run(void **state) {
    must_have_ranks();
    run_file(state, text_run, ", \"execution\": {\"reproducible\": true}");
    free(succeed(state, LIST("train", "run.json", "--out", "one", "--threads", "1")));
    outcome o = run(state, LIST("train", "run.json", "--ranks", "2", "--threads", "1"));
    if (o.status != 0) {
        fail_msg("status %d\n%s", o.status, o.err);
    }
    assert_says(o.err, "batch 5 = 2 x 2 accumulation steps x 2 ranks");
    assert_says(o.out, "step 6/6");
    outcome_free(&o);
    free(succeed(state, LIST("diff", "one", "out")));
}

// A rank that comes late is waited for, which is said.
static void test_late(void **state) {
    static const setting launch = {.program = "/bin/sh"};
    must_have_ranks();
    run_file(state, text_run, "");
    outcome o = run_with(
        state, &launch,
        LIST(TR_LAUNCH, TR_MPIRUN, "2", "/bin/sh", "-c",
             "[ \"${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}\" = 1 ] && sleep 4; exec "
             "\"$0\" train run.json",
             TR_PROGRAM));
    assert_int_equal(o.status, 0);
    const char *said = strstr(o.err, "waiting for all ranks: 2 s\n");
    assert_non_null(said);
    assert_null(strstr(said + 1, "waiting"));
    assert_says(o.out, "step 6/6");
    outcome_free(&o);
}

// One message, with the status of the ranks.
static void test_error(void **state) {
    must_have_ranks();
    run_file(state, text_run, "");
    fail_with(state, NULL, LIST("train", "run.json", "--ranks", "2", "--set", "sed=1"),
              2, LIST("tranche: --set: sed: no such key; did you mean \"seed\"?"));
    fail_with(state, NULL, LIST("train", "run.json", "--ranks", "2", "--model", "gtp2"),
              2, LIST("the nearest name is \"gpt2\""));
    fail_with(state, NULL, LIST("train", "run.json", "--ranks", "999999"), 2,
              LIST("--ranks 999999: one machine takes at most 4096 ranks"));
}

// A signal comes to the ranks, which save; the status tells which one it was, but for
// MPICH's mpiexec 4.0, which ends with 0 at times. After that the same command goes on.
static void test_signals(void **state) {
    static const setting timeout = {.program = "/usr/bin/timeout"};
    static const struct {
        const char *name;
        int status;
    } all[] = {{"INT", 130}, {"TERM", 143}, {"USR1", 138}};
    must_have_ranks();
    run_file(state, classifier_run, ", \"checkpoint\": {\"keep\": 1}");
    for (int i = 0; i < 3; i++) {
        outcome o =
            run_with(state, &timeout,
                     LIST("--foreground", "--preserve-status", "-s", all[i].name, "4",
                          TR_PROGRAM, "train", "run.json", "--ranks", "2", MANY));
        bool lost = o.status == 0 && strstr(TR_MPIRUN, "mpich");
        if (o.status != all[i].status && !lost) {
            fail_msg("%s: status %d\n%s", all[i].name, o.status, o.err);
        }
        assert_says(o.out, "interrupted; checkpoint of step ");
        assert_true(i == 0 || strstr(o.err, "resumed from out/checkpoints/step-"));
        outcome_free(&o);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_run),
        TEST(test_late),
        TEST(test_error),
        TEST(test_signals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
