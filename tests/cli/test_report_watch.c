// tranche report --watch: the page of runs that go on, and when it is done with them.
#include "command.h"
#include "runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// A folder with these metrics.
static void metrics(void **state, const char *out, const char *lines) {
    char name[256];
    mkdir(file_path(state, out), 0777);
    snprintf(name, sizeof name, "%s/metrics.jsonl", out);
    file_text(state, name, lines);
}

// What scripts begin with. `begin` watches the run, `await` waits until the page has
// words, and `ends` until the watching has ended by itself. $1: the program.
static const char words[] =
    "has() { grep -qF \"$1\" p.html 2>/dev/null; }\n"
    "step() { echo \"{\\\"step\\\": $1, \\\"loss\\\": $2}\"; }\n"
    "await() {\n"
    "    i=0\n"
    "    until has \"$1\"; do sleep 0.1; i=$((i+1)); [ $i -lt 300 ] || exit 9; done\n"
    "}\n"
    "ends() {\n"
    "    i=0\n"
    "    while kill -0 $p 2>/dev/null && ! grep -q '^State:.Z' /proc/$p/status; do\n"
    "        sleep 0.1; i=$((i+1)); [ $i -lt 300 ] || { kill $p; exit 8; }\n"
    "    done\n"
    "    wait $p || exit 7\n"
    "}\n"
    "\"$1\" report out --out p.html --watch & p=$!\n";

static outcome shell(void **state, const char *script) {
    static const setting sh = {.program = "/bin/sh"};
    char *whole = NULL;
    assert_true(asprintf(&whole, "%s%s", words, script) > 0);
    outcome o = run_with(state, &sh, LIST("-c", whole, "sh", TR_PROGRAM));
    free(whole);
    return o;
}

static void succeeds(void **state, const char *script) {
    outcome o = shell(state, script);
    if (o.status != 0) {
        fail_msg("status %d: %s%s", o.status, o.out, o.err);
    }
    assert_string_equal(o.out, "p.html: 1 run\n");
    outcome_free(&o);
}

// A watched page has what comes, and what was read is not read again. A file that was
// cut back is read anew. At the end of the run it no longer reloads.
static void test_what_comes(void **state) {
    char lines[1000] = "";
    for (int i = 1; i <= 9; i++) {
        snprintf(lines + strlen(lines), sizeof lines - strlen(lines),
                 "{\"step\": %d, \"loss\": %d}\n", i, i);
    }
    metrics(state, "out", lines);
    file_text(state, "out/run.json", "{\"steps\": 20}");
    succeeds(state, "await '\"count\":9,'; has 'data-reload=' || exit 6\n"
                    "printf X | dd of=out/metrics.jsonl bs=1 count=1 conv=notrunc"
                    " 2>/dev/null\n"
                    "step 10 3 >>out/metrics.jsonl\n"
                    "printf '{\"step\": 11, \"lo' >>out/metrics.jsonl\n"
                    "await '\"count\":10,'; has 'passed over' && exit 5\n"
                    "echo 'ss\": 3}' >>out/metrics.jsonl\n"
                    "await '\"count\":11,'; has 'passed over' && exit 4\n"
                    "step 1 5 >out/metrics.jsonl; await '\"count\":1,'\n"
                    "step 20 5 >>out/metrics.jsonl; ends\n"
                    "has '\"count\":2,' || exit 3\n"
                    "! has 'data-reload='\n");
}

// Epochs are as many steps as the run has come to.
static void test_epochs(void **state) {
    metrics(state, "out", "{\"step\": 1, \"loss\": 2}\n");
    file_text(state, "out/run.json", "{\"epochs\": 2, \"derived\": {\"steps\": 3}}");
    succeeds(state, "await '\"count\":1,'; has 'data-reload=' || exit 6\n"
                    "step 2 1 >>out/metrics.jsonl; await '\"count\":2,'\n"
                    "step 3 1 >>out/metrics.jsonl; ends\n"
                    "! has 'data-reload='\n");
}

// With an adaptive batch nobody knows how many these are: the last checkpoint says so.
static void test_adaptive_epochs(void **state) {
    metrics(state, "out", "{\"step\": 1, \"loss\": 2}\n");
    file_text(state, "out/run.json", "{\"epochs\": 2, \"derived\": {\"steps\": 30}}");
    succeeds(state, "await '\"count\":1,'; mkdir -p out/checkpoints/latest\n"
                    "echo '{\"epoch\": 1}' >out/checkpoints/latest/state.json\n"
                    "step 2 1 >>out/metrics.jsonl; await '\"count\":2,'\n"
                    "has 'data-reload=' || exit 6\n"
                    "echo '{\"epoch\": 2}' >out/checkpoints/latest/state.json; ends\n"
                    "! has 'data-reload='\n");
}

// A run of the program's that goes by epochs is complete.
static void test_trained_epochs(void **state) {
    run_file(state, classifier_run, "");
    free(succeed(
        state, LIST("train", "run.json", "--set", "steps=null", "--set", "epochs=2")));
    char *said = succeed(state, LIST("report", "out", "--watch"));
    assert_string_equal(said, "report.html: 1 run\n");
    free(said);
}

// Whoever watches may stop; and a run that has not begun is waited for.
static void test_ends(void **state) {
    mkdir(file_path(state, "out"), 0777);
    outcome o = shell(state, "sleep 0.5; step 1 5 >out/metrics.jsonl\n"
                             "await '\"count\":1,'; kill -TERM $p; wait $p\n");
    assert_int_equal(o.status, 0);
    assert_says(o.err, "waiting for its first step");
    outcome_free(&o);
    metrics(state, "good", "{\"step\": 1, \"loss\": 0.1}\n");
    file_text(state, "good/run.json", "{\"steps\": 1}");
    char *said = succeed(state, LIST("report", "good", "--watch"));
    free(said); // a run that is complete
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_what_comes),     TEST(test_epochs), TEST(test_adaptive_epochs),
        TEST(test_trained_epochs), TEST(test_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
